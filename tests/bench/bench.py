"""Measures this library and its peers in turn, checks what they compute, and prints a table.

    bench.py [options] [FILTER...]      cases in whose name a FILTER, a regular expression, is
                                        found; all but flags without

    --list              names of the cases
    --quick             N of 64 and 128, five samples
    --tiny              seconds: the test of the bench itself
    --samples N         of each program and case (nine)
    --torch PYTHON      the interpreter whose PyTorch is the peer; may be repeated, "none" for none;
                        without it python3 and /usr/bin/python3, as far as they have one
    --no-compile        leaves torch.compile out
    --csv FILE          in place of results.csv
    --build FOLDER      where the programs are (build/bench)
    --results FOLDER    where results go (build/bench)
    --planted           our programs compute wrong formulas, for the test of the bench

tests/bench/run builds the programs and calls this. Status 1 where a number is wrong or a program
failed.
"""

import os
import sys

import cases
import machine
import report
from programs import Missing, Program, ProgramFailed, take_turns

HERE = os.path.dirname(os.path.abspath(__file__))


class Options:
    def __init__(self, words):
        self.filters, self.torches = [], []
        self.quick = self.tiny = self.list = self.planted = False
        self.compile, self.samples, self.csv = True, 0, None
        self.build = self.results = "build/bench"
        words = iter(words)
        for word in words:
            if word in ("--quick", "--tiny", "--list", "--planted"):
                setattr(self, word[2:], True)
            elif word == "--no-compile":
                self.compile = False
            elif word in ("--samples", "--torch", "--csv", "--build", "--results"):
                value = next(words, None)
                if value is None:
                    sys.exit(f"tests/bench/run: {word} needs a value")
                if word == "--torch":
                    self.torches.append(value)
                else:
                    setattr(self, word[2:], int(value) if word == "--samples" else value)
            elif word.startswith("-"):
                sys.exit(f"tests/bench/run does not know '{word}'; --help says what it does")
            else:
                self.filters.append(word)
        self.samples = self.samples or (2 if self.tiny else 5 if self.quick else 9)
        self.seconds = 0.001 if self.tiny else 0.05 if self.quick else 0.1

    def cases(self):
        found = cases.select(cases.tiny_cases() if self.tiny else cases.all_cases(self.quick),
                             self.filters)
        if not found:
            sys.exit(f"tests/bench/run: no case has {' or '.join(self.filters)} in its name; "
                     "--list says all")
        return found


class Bench:
    """Starts programs, keeps references, and collects rows."""

    def __init__(self, options):
        self.options = options
        self.log = os.path.join(options.results, "programs.log")
        open(self.log, "w").close()
        self.programs = os.path.join(options.build, "tests/bench")
        wanted = [] if options.torches == ["none"] else options.torches or machine.PYTHONS
        self.torches, self.absent = machine.find_torches(wanted, HERE)
        for torch in self.torches:
            torch.choose_kernels()
        self.references, self.rows, self.failed = {}, [], False
        self.core_type = next((t.kernels["OPENBLAS_CORETYPE"] for t in self.torches
                               if "OPENBLAS_CORETYPE" in t.kernels), None)
        self.peak = self.start("peak", [self.program("bench_gemm"), "fma", "-", "0.01"])

    def program(self, name):
        return os.path.join(self.programs, name)

    def start(self, label, command, **more):
        environment = machine.plain_environment(1)
        environment.update({"UCX_LOG_LEVEL": "error", "DTM_CHECK_LEVEL": "1", **more})
        return Program(label, command, environment, self.log)

    def fma_rates(self):
        """By the clock and by the processor's."""
        flops = self.peak.about["flops"]
        return flops / self.peak.median(), flops / self.peak.median("cpu_seconds")

    # ---- modules ---------------------------------------------------------------------------------
    def own(self, case, ranks, which=None):
        command = [self.program("bench_modules"), case.module, which or case.which or "forward",
                   str(max(case.tokens, 1)), str(self.options.seconds)]
        command += ["--planted"] if self.options.planted and which != "serial" else []
        return self.start(f"dtm, {which or case.which}, {ranks} ranks",
                          (["mpiexec", "-n", str(ranks)] if ranks > 1 else []) + command)

    def peer(self, torch, case, threads, malloc, formulation=None):
        command = [torch.python, os.path.join(HERE, "peer.py"), case.module, case.which,
                   str(case.tokens), str(self.options.seconds), str(threads)]
        command += ["--formulation", formulation] if formulation else []
        command += [] if self.options.compile else ["--no-compile"]
        words = formulation == "first" and "as published" or malloc
        return Program(f"torch {torch.version}, {words}, {threads} threads", command,
                       torch.environment(threads, malloc == "tuned"), self.log)

    def reference(self, case, peers):
        """Digests to compare with, and whose: the serial module in fp64 where it takes seconds or
        nobody else is there, else PyTorch."""
        key = (case.module, case.tokens)
        if key not in self.references:
            if case.tokens <= 33 or not peers:
                program = self.own(case, 1, "serial")
                self.references[key] = "serial", program.about
                program.close()
            else:
                return peers[0].label, peers[0].about
        return self.references[key]

    def check(self, case, program, reference):
        whose, digests = reference
        if program.label == whose:
            return "reference"
        share, name, error, limit = cases.deviation(case.module, case.tokens, *(
            {key: value for key, value in about.items() if cases.is_digest(key)}
            for about in (program.about, digests)))
        if name == "nothing":
            return "unchecked"
        text = f"{name} {error:.0e} of {limit:.0e}"
        if share > 1:
            self.fail(f"{case.name}: {program.label} computes something else than {whose}: {text}")
            return "WRONG " + text
        return text

    def fail(self, text):
        print("FAILED:", text, flush=True)
        self.failed = True

    def measure_module(self, case):
        """One group: own ranks, and of every PyTorch the fastest formulation with both mallocs
        and, on one thread, the published one."""
        own, peers, everyone = {}, {}, []

        def add(where, key, make):
            try:
                where[key] = make()
                everyone.append(where[key])
            except (ProgramFailed, Missing) as failure:
                self.fail(f"{case.name}: {key}: {failure}")

        try:
            for torch in self.torches:
                chosen = None  # by the first, with one thread
                for threads in sorted({min(ranks, 2) for ranks in case.ranks}):
                    tuned = (torch.version, threads, "tuned")
                    add(peers, tuned, lambda: self.peer(torch, case, threads, "tuned", chosen))
                    if tuned not in peers:
                        continue
                    chosen = peers[tuned].about["formulation"]
                    if not self.options.tiny:
                        add(peers, (torch.version, threads, "stock"),
                            lambda: self.peer(torch, case, threads, "stock", chosen))
                    if threads == 1:
                        add(peers, (torch.version, threads, "published"),
                            lambda: self.peer(torch, case, threads, "tuned", "first"))
            for ranks in case.ranks:
                for which in case.own_passes:
                    add(own, (ranks, which), lambda: self.own(case, ranks, which))
            reference = self.reference(case, list(peers.values()))
            checks = {p.label: self.check(case, p, reference) for p in everyone}
            self.peak.samples.clear()
            for label, why in take_turns([*everyone, self.peak], self.options.samples).items():
                self.fail(f"{case.name}: {label}: {why}")
        finally:
            for program in everyone:
                program.close()
        for which in case.own_passes:
            for ranks in case.ranks:
                self.rows.append(report.module_row(case, which, ranks, own.get((ranks, which)),
                                                   peers, checks, self.fma_rates()))

    # ---- products, flags, barriers ---------------------------------------------------------------
    def measure_together(self, case, commands):
        """Programs by label, one row each."""
        everyone, missing = [], {}
        try:
            for label, (command, more) in commands.items():
                try:
                    everyone.append(self.start(label, command, **more))
                except Missing:
                    missing[label] = "not installed"
                except (ProgramFailed, OSError) as failure:
                    missing[label] = "failed"
                    self.fail(f"{case.name}: {label}: {failure}")
            self.peak.samples.clear()
            for label, why in take_turns([*everyone, self.peak], self.options.samples).items():
                self.fail(f"{case.name}: {label}: {why}")
        finally:
            for program in everyone:
                program.close()
        for program in everyone:
            # of 64 elements, in units of what is expected of one
            if program.about.get("error", 0) > 8:
                self.fail(f"{case.name}: {program.label} is wrong by {program.about['error']:.1f} "
                          "times the rounding that is expected")
        for label in commands:
            found = [program for program in everyone if program.label == label]
            self.rows.append(report.product_row(case, label, found[0] if found else None,
                                                missing.get(label, ""), self.fma_rates()))

    def measure_product(self, case):
        core = {"OPENBLAS_CORETYPE": self.core_type} if self.core_type else {}
        self.measure_together(case, {
            library: ([self.program("bench_gemm"), library, case.module, str(self.options.seconds)]
                      + (["--planted"] if self.options.planted else []),
                      core if library == "openblas" else {})
            for library in ("dtm", "onednn", "openblas", "eigen")})

    def measure_flags(self, case):
        folder = os.path.join(self.options.build, "flags")
        labels = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        if not labels:
            self.fail("flags: tests/bench/run builds its programs only where a filter asks for it")
        self.measure_together(case, {
            label: ([os.path.join(folder, label), "dtm", case.module, str(self.options.seconds)],
                    {}) for label in labels})

    def measure_barrier(self, case):
        ranks = case.ranks[0]
        command = ["mpiexec", "-n", str(ranks), self.program("bench_modules"), "barrier", "forward",
                   "1", str(self.options.seconds)]
        self.measure_together(case, {f"{ranks} ranks": (command, {})})

    def run(self, after_each):
        """An interrupted run keeps what it has; a case that cannot be finished is named."""
        try:
            for case in self.options.cases():
                print(f"{machine.clock()} {case.name}", flush=True)
                try:
                    getattr(self, "measure_" + case.kind)(case)
                except ProgramFailed as failure:
                    self.fail(f"{case.name}: {failure}")
                after_each()
        finally:
            self.peak.close()


def main(words):
    if "-h" in words or "--help" in words:
        return print(__doc__.strip())
    options = Options(words)
    if options.list:
        print(*[case.name for case in cases.tiny_cases() if options.tiny] or
              [case.name for case in cases.all_cases(options.quick)], sep="\n")
        return 0
    os.makedirs(options.results, exist_ok=True)
    before = machine.load()
    bench = Bench(options)

    def write():
        head = machine.describe(bench, words, before)
        text = report.text(head, bench.rows, machine.cores())
        report.write(options, head, bench.rows, text)
        return text

    bench.run(write)
    print("\n" + write())
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
