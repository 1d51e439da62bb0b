# Sourced by tests/run, tests/bench/run and examples/run: Debian packages, and how many compilers may run at once.

# install_packages PACKAGE...
# Installs what is missing and says so. As root, or with sudo; otherwise it names the packages and ends the
# script. DTM_SKIP_PACKAGES=1 trusts the machine; so does a machine without dpkg, where CMake then says
# what it cannot find.
install_packages() {
  if [ "${DTM_SKIP_PACKAGES:-0}" = 1 ] || ! command -v dpkg-query >/dev/null; then return; fi
  local package missing=() as_root=()
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  if [ "${#missing[@]}" = 0 ]; then return; fi
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      echo "These packages are missing and this user may not install them: ${missing[*]}" >&2
      echo "Ask for:  apt-get install ${missing[*]}" >&2
      exit 1
    fi
  fi
  echo "Installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || echo "apt-get update failed; trying with the lists at hand" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
    { echo "apt-get could not install: ${missing[*]}" >&2; exit 1; }
}

# One compiler per core, but each may take 1.5 GiB.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo 2>/dev/null || echo "$cores")
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# configure FOLDER [cmake options]: quiet when all is well.
configure() {
  local folder=$1 generator=()
  shift
  if [ ! -e "$folder/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
  mkdir -p "$folder"
  cmake -S . -B "$folder" "${generator[@]}" "$@" >"$folder/configure.log" 2>&1 ||
    { cat "$folder/configure.log" >&2; exit 1; }
}

build_packages=(g++ cmake ninja-build mpich libmpich-dev libboost-dev)
test_packages=("${build_packages[@]}" catch2 clang valgrind)
bench_packages=("${build_packages[@]}" catch2 clang python3)
bench_peer_packages=(python3-torch libopenblas-dev libdnnl-dev libeigen3-dev)
example_packages=("${build_packages[@]}" gemmi-dev tao-pegtl-dev libcli11-dev libstb-dev)
