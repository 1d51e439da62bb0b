"""One module in plain PyTorch on the CPU, as fast as PyTorch gets; the peer of modules.cpp.

    peer.py MODULE PASS TOKENS SECONDS THREADS [--samples N] [--formulation NAME] [--no-compile]
    peer.py versions          what this PyTorch is; without one, a sentence and status 3
    peer.py rate              how fast and how right the kernels that the environment chooses are

PASS is forward (under no_grad) or both. Every formulation of the module is tried and the fastest
is measured, unless one is named; "first" is how the models publish it. The first line has the
digest of every result, as modules.cpp writes it; then a time for every line of standard input.
Inputs and parameters are functions of their names and indices, the ones of
include/dtm/testing/draw.hpp.
"""

import json
import resource
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(json.dumps({"missing": f"PyTorch is not installed ({error})"}))
    sys.exit(3)

from peer_modules import CHANNELS, MODULES, parameter_shapes

MASK = (1 << 64) - 1


# ---- numbers of draw.hpp -------------------------------------------------------------------------
def bits(key, counter):
    """splitmix64 of Python integers."""
    x = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key_of(name, seed=0):
    value = 0xCBF29CE484222325
    for letter in name.encode():
        value = ((value ^ letter) * 0x100000001B3) & MASK
    return bits(value, seed)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def uniform(name, *extents):
    """[-1, 1) in fp64; the same splitmix64, where int64 wraps around."""
    count = 1
    for extent in extents:
        count *= extent
    x = torch.arange(1, count + 1, dtype=torch.int64) * signed(0x9E3779B97F4A7C15)
    x += signed(key_of(name))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, None)):
        x ^= (x >> shift) & ((1 << (64 - shift)) - 1)
        if factor is not None:
            x *= signed(factor)
    x = (x >> 10) & ((1 << 54) - 1)
    return (x.double() * 2.0**-53 - 1.0).reshape(extents)


def draw_parameter(name, extents):
    value = uniform(name, *extents)
    if len(extents) >= 2:
        return (value * (3.0 / extents[-1]) ** 0.5).float()
    return (1 + 0.5 * value if name.endswith("weight") else 0.5 * value).float()


def digest(tensor):
    flat = tensor.detach().reshape(-1)
    places = [bits(key_of("sample"), s) % flat.numel() for s in range(8)]
    return [flat.numel(), flat.double().norm().item()] + [flat[place].item() for place in places]


# ---- measuring -----------------------------------------------------------------------------------
def peak_resident_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0


def forget_peak():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # then the peak is that of the whole process


def say(**fields):
    print(json.dumps(fields), flush=True)


class Case:
    """A module with its inputs; `run(formulation)` is what is timed."""

    def __init__(self, module, tokens, both):
        self.module, self.both = MODULES[module], both
        shape = (1, tokens, tokens)
        self.x = uniform("x", *shape, CHANNELS).float().requires_grad_(both)
        self.dy = uniform("dy", *shape, CHANNELS).float()
        self.mask = (uniform("mask", *shape) >= -0.8).float()
        self.parameters = {name: draw_parameter(name, extents).requires_grad_(both)
                           for name, extents in parameter_shapes(module)}

    def forward(self, formulation):
        return formulation(self.parameters, self.x, self.mask)

    def run(self, formulation):
        if not self.both:
            with torch.no_grad():
                return self.forward(formulation), ()
        y = self.forward(formulation)
        # a part of the pair block is tried alone, with the parameters of all
        return y, torch.autograd.grad(y, [self.x, *self.parameters.values()], self.dy,
                                      allow_unused=True)

    def digests(self, formulation):
        y, gradients = self.run(formulation)
        names = ["dx"] + ["d " + name for name in self.parameters]
        return {"y": digest(y), **{n: digest(g) for n, g in zip(names, gradients)}}

    def time(self, formulation, clock, runs=2):
        times = []
        for _ in range(runs + 1):
            begin = clock()
            self.run(formulation)
            times.append(clock() - begin)
        return min(times[1:])

    def fastest(self, formulations, threads):
        """Of one thread the processor's time is compared, which other programs disturb less."""
        clock = time.process_time if threads == 1 else time.perf_counter
        times = {name: self.time(f, clock) for name, f in formulations.items()}
        return min(times, key=times.get)


def compiled(formulation):
    """Of the new versions; None where there is no compiler, or it fails."""
    return torch.compile(formulation) if hasattr(torch, "compile") else None


def choose(case, arguments):
    """The name of a formulation and what it computes."""
    formulations = case.module.formulations(case.both, case, arguments["threads"])
    named = arguments["formulation"]
    if named == "first":
        return next(iter(formulations.items()))
    if named:
        formulation = formulations[named.removesuffix(", compiled")]
        return named, compiled(formulation) if named.endswith(", compiled") else formulation
    name = case.fastest(formulations, arguments["threads"])
    candidate = compiled(formulations[name]) if arguments["compile"] else None
    if candidate is not None:
        try:
            case.run(candidate)
            both = {name: formulations[name], name + ", compiled": candidate}
            name = case.fastest(both, arguments["threads"])
            return name, both[name]
        except Exception as error:  # whatever its compiler says, there is another formulation
            print(f"torch.compile failed: {error}", file=sys.stderr)
    return name, formulations[name]


def measure(module, which, tokens, seconds, arguments):
    torch.set_num_threads(arguments["threads"])
    case = Case(module, tokens, which == "both")
    name, formulation = choose(case, arguments)
    digests = case.digests(formulation)
    wall = case.time(formulation, time.perf_counter, 1)
    runs = 1 if wall >= seconds else -int(-seconds // wall)
    say(formulation=name, threads=torch.get_num_threads(), **digests)
    forget_peak()
    for _ in range(arguments["samples"]) if arguments["samples"] else sys.stdin:
        if runs > 1:
            case.run(formulation)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        begin, cpu_begin = time.perf_counter(), time.process_time()
        for _ in range(runs):
            case.run(formulation)
        end, cpu_end = time.perf_counter(), time.process_time()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        say(seconds=(end - begin) / runs, cpu_seconds=(cpu_end - cpu_begin) / runs,
            page_faults=faults / runs, resident_bytes=peak_resident_bytes())


def versions():
    x = torch.ones(64, 64)
    torch.mm(x, x)  # loads what it loads late
    with open("/proc/self/maps") as maps:
        loaded = maps.read()
    settings = torch.__config__.show()
    blas = "mkl" if torch.backends.mkl.is_available() else next(
        (name for name in ("openblas", "blis") if name in loaded), "unknown")
    capability = [line.split(":")[1].strip() for line in settings.splitlines()
                  if "CPU capability" in line]
    say(version=torch.__version__, blas=blas, capability=(capability or ["unknown"])[0])


def rate():
    """What the kernels that OPENBLAS_CORETYPE and ATEN_CPU_CAPABILITY choose are worth: a gate
    between two products."""
    torch.set_num_threads(1)
    x, w = uniform("x", 8192, 128).float(), uniform("w", 256, 128).float()
    times = []
    with torch.no_grad():
        for _ in range(12):
            begin = time.process_time()
            y = F.linear(x, w)
            F.linear(x, w).sigmoid_().mul_(y)
            times.append(time.process_time() - begin)
    exact = x.double() @ w.double().t()
    say(seconds=min(times), error=((y - exact).abs().max() / exact.abs().max()).item())


def main(words):
    if words in (["versions"], ["rate"]):
        return globals()[words[0]]()
    arguments = {"samples": 0, "formulation": None, "compile": True}
    plain = []
    words = iter(words)
    for word in words:
        if word == "--samples":
            arguments["samples"] = int(next(words))
        elif word == "--formulation":
            arguments["formulation"] = next(words)
        elif word == "--no-compile":
            arguments["compile"] = False
        else:
            plain.append(word)
    module, which, tokens, seconds, threads = plain
    arguments["threads"] = int(threads)
    measure(module, which, int(tokens), float(seconds), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
