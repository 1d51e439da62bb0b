"""Times of the modules that bench_modules.cpp measures, in plain PyTorch, on one GPU.

    torch_bench.py FILE N...

A line for each module: its name, N, the element type, and the median milliseconds of forward and of
forward with backward. Without PyTorch, or without a GPU that it can use, one sentence and status 3.
"""

import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(3)

CHANNELS, BINS, ROUNDS, WARM_UP = 128, 64, 9, 2


def draw(*shape, dtype, scale=1.0):
    return scale * (2 * torch.rand(*shape, device="cuda", dtype=torch.float32) - 1).to(dtype)


def parameter(*shape, dtype):
    return draw(*shape, dtype=dtype, scale=0.1).requires_grad_()


def layer_norm(dtype):
    weight, bias = parameter(CHANNELS, dtype=dtype), parameter(CHANNELS, dtype=dtype)
    return lambda x: F.layer_norm(x, (CHANNELS,), weight, bias, 1e-5)


def linear(inputs, outputs, dtype):
    weight = parameter(outputs, inputs, dtype=dtype)
    return lambda x: F.linear(x, weight)


def transition(dtype):
    norm = layer_norm(dtype)
    fc1, fc2 = linear(CHANNELS, 4 * CHANNELS, dtype), linear(CHANNELS, 4 * CHANNELS, dtype)
    fc3 = linear(4 * CHANNELS, CHANNELS, dtype)

    def forward(x, mask):
        u = norm(x)
        return fc3(F.silu(fc1(u)) * fc2(u))

    return forward


def triangle(dtype, equation):
    norm_in, norm_out = layer_norm(dtype), layer_norm(dtype)
    p_in, g_in = linear(CHANNELS, 2 * CHANNELS, dtype), linear(CHANNELS, 2 * CHANNELS, dtype)
    p_out, g_out = linear(CHANNELS, CHANNELS, dtype), linear(CHANNELS, CHANNELS, dtype)

    def forward(x, mask):
        u = norm_in(x)
        a, b = (p_in(u) * g_in(u).sigmoid() * mask.unsqueeze(-1)).chunk(2, dim=-1)
        o = torch.einsum(equation, a, b)
        return p_out(norm_out(o)) * g_out(u).sigmoid()

    return forward


def distogram_loss(pred, target, mask):
    pair = mask[:, :, None] * mask[:, None, :]
    pair = (pair * (1 - torch.eye(pair.shape[1], device="cuda"))).float()
    target = target / target.sum(-1, keepdim=True).clamp(min=1)
    errors = -(target * F.log_softmax(pred.float(), dim=-1)).sum(-1)
    return ((errors * pair).sum((1, 2)) / (1e-5 + pair.sum((1, 2)))).mean()


def median(work):
    cold = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(WARM_UP + ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        cold.zero_()
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times[WARM_UP:])[ROUNDS // 2]


def measure(file, name, tokens, dtype, forward, upstream):
    def both():
        forward().backward(upstream)

    kind = "fp32" if dtype == torch.float32 else "bf16"
    print(name, tokens, kind, f"{median(forward):.4f} {median(both):.4f}", file=file, flush=True)


def main(path, sizes):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    with open(path, "w") as file:
        for tokens in sizes:
            for dtype in (torch.float32, torch.bfloat16):
                shape = (1, tokens, tokens)
                x = draw(*shape, CHANNELS, dtype=dtype).requires_grad_()
                dy = draw(*shape, CHANNELS, dtype=dtype)
                mask = draw(*shape, dtype=dtype)
                for name, module in (
                    ("transition", transition(dtype)),
                    ("triangle_outgoing", triangle(dtype, "bikd,bjkd->bijd")),
                    ("triangle_incoming", triangle(dtype, "bkid,bkjd->bijd")),
                ):
                    measure(file, name, tokens, dtype, lambda: module(x, mask), dy)
                    del module
                pred = draw(*shape, BINS, dtype=dtype, scale=4.0).requires_grad_()
                target = draw(*shape, BINS, dtype=dtype)
                single = draw(1, tokens, dtype=dtype)
                one = torch.ones((), device="cuda")
                measure(file, "distogram_loss", tokens, dtype,
                        lambda: distogram_loss(pred, target.float(), single), one)
                del x, dy, pred, target
                torch.cuda.empty_cache()
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        sys.exit(3)
    main(sys.argv[1], [int(word) for word in sys.argv[2:]])
