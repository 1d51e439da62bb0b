# Sourced by tests/gpu/run and examples/run: where nvcc is, and for which GPUs it should compile.

find_nvcc() {
  local folder
  command -v nvcc && return
  for folder in "${CUDA_PATH:-}" "${CUDA_HOME:-}" /usr/local/cuda; do
    if [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ]; then
      echo "$folder/bin/nvcc"
      return
    fi
  done
  return 1
}

# The folder of the toolkit that an nvcc belongs to; the command in PATH may be a link.
toolkit_of() { dirname "$(dirname "$(readlink -f "$1")")"; }

# One line for each GPU, such as 90; nothing where the driver does not say.
gpu_architectures() {
  nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    grep -E '^[0-9]+\.[0-9]+$' | tr -d . || true
}
