"""Rows of results, and what is made of them: the table, a CSV file, a plot."""

import csv
import math
import os

import cases
import plot

NOT_INSTALLED = "not installed"


# ---- rows ----------------------------------------------------------------------------------------
def measured(prefix, program):
    """Fields of a program that has samples."""
    if program is None or not program.samples:
        return {}
    return {f"{prefix}_seconds": program.median(), f"{prefix}_best": program.best(),
            f"{prefix}_cpu_seconds": program.median("cpu_seconds"),
            f"{prefix}_spread": program.spread(), f"{prefix}_samples": len(program.samples),
            f"{prefix}_page_faults": program.median("page_faults"),
            f"{prefix}_resident_bytes": program.median("resident_bytes")}


def with_rates(row, flops, peak):
    """Operations a second, and the share of `peak` that they are: of the clock's rate and the
    processor's. On one core both are taken of the processor's time, which other programs disturb
    less; they say the same where there are none."""
    cores = row.get("threads", 1)
    by_clock, by_processor = peak
    row["peak_gflops"] = (by_clock * cores if cores > 1 else by_processor) * 1e-9
    for who, key in (("ours", ""), ("peer", "peer_")):
        seconds = row.get(f"{who}_seconds" if cores > 1 else f"{who}_cpu_seconds")
        if seconds:
            row[key + "gflops"] = flops / seconds * 1e-9
            row[key + "share_of_peak"] = row[key + "gflops"] / row["peak_gflops"]
    return row


def module_row(case, which, ranks, ours, peers, checks, peak):
    threads = min(ranks, 2)  # at most; on a busy machine one may be faster than two
    tuned = {key: program for key, program in peers.items()
             if key[1] <= threads and key[2] != "stock" and program.samples}
    row = {"kind": case.kind, "case": f"{case.module}/{which}/{case.tokens}",
           "module": case.module, "pass": which, "tokens": case.tokens, "ranks": ranks,
           "threads": threads}
    row.update(measured("ours", ours))
    if ours is not None:
        shard = ours.about["shard_bytes"]
        row.update(sent_bytes=ours.about["sent_bytes"], shard_bytes=shard,
                   extra_shards=ours.about["extra_bytes"] / shard - 1,
                   checked=checks[ours.label])
    else:
        row["ours"] = "failed"
    if tuned:
        best = min(tuned, key=lambda key: tuned[key].median())
        row.update(measured("peer", tuned[best]), peer=best[0], peer_threads=best[1],
                   formulation=tuned[best].about["formulation"])
        for kind in ("stock", "published"):
            row.update(measured(kind, peers.get((*best[:2], kind))))
        if ours is None:
            row["checked"] = checks[tuned[best].label]
        for kind in ("peer", "stock", "published"):
            if f"{kind}_seconds" in row and "ours_seconds" in row:
                row[f"{kind}_ratio"] = row[f"{kind}_seconds"] / row["ours_seconds"]
        if "ours_seconds" in row and ranks == 1:
            row["cpu_ratio"] = row["peer_cpu_seconds"] / row["ours_cpu_seconds"]
    else:
        row["peer"] = "failed" if peers else NOT_INSTALLED
    return with_rates(row, cases.flops(case.module, case.which, case.tokens), peak)


def product_row(case, label, program, missing, peak):
    row = {"kind": case.kind, "case": case.name, "library": label, "missing": missing}
    row.update(measured("ours", program))
    if program is None:
        return row
    row["version"] = program.about.get("version", "")
    row["checked"] = f"{program.about['error']:.1f} of 8" if "error" in program.about else ""
    return with_rates(row, program.about["flops"], peak) if "flops" in program.about else row


# ---- the table -----------------------------------------------------------------------------------
def number(row, key, form="{:.2f}", scale=1.0):
    return form.format(row[key] * scale) if row.get(key) is not None else "-"


def milliseconds(row, key):
    value = row.get(key)
    if value is None:
        return "-"
    digits = max(0, 2 - math.floor(math.log10(value * 1e3)))
    return f"{value * 1e3:.{digits}f}"


def percent(row, key):
    return number(row, key, "{:.0f}%", 100)


def table(title, columns, lines):
    """Columns by name, the first to the left. Nothing where there are no lines."""
    if not lines:
        return []
    widths = [max(len(str(line[i])) for line in [columns, *lines]) for i in range(len(columns))]

    def laid_out(line):
        return "  ".join(str(word).ljust(width) if i == 0 else str(word).rjust(width)
                         for i, (word, width) in enumerate(zip(line, widths))).rstrip()

    return ["", title, "", laid_out(columns), *(laid_out(line) for line in lines)]


def module_times(rows):
    columns = ["case", "ranks/threads", "ours ms", "peer ms", "stock", "published", "ratio", "cpu",
               "stock", "published", "GFLOP/s", "of peak", "peer's", "spread", "peer's", "check"]
    lines = [[row["case"], f"{row['ranks']}/{row.get('peer_threads', row['threads'])}",
              row.get("ours") or milliseconds(row, "ours_seconds"),
              milliseconds(row, "peer_seconds") if "peer_seconds" in row else row["peer"],
              milliseconds(row, "stock_seconds"), milliseconds(row, "published_seconds"),
              number(row, "peer_ratio"), number(row, "cpu_ratio"), number(row, "stock_ratio"),
              number(row, "published_ratio"), number(row, "gflops", "{:.0f}"),
              percent(row, "share_of_peak"), number(row, "peer_gflops", "{:.0f}"),
              percent(row, "ours_spread"), percent(row, "peer_spread"), row.get("checked", "-")]
             for row in rows if row["kind"] == "module"]
    return table("Modules: fp32, 128 channels. peer: PyTorch, fastest formulation, tuned malloc; "
                 "stock: the same, stock malloc;\npublished: as the models write it, tuned malloc. "
                 "Ratios are their times by ours; cpu\nis that of the processor times, of which the "
                 "rates on one rank are, too.", columns, lines)


def module_memory(rows):
    columns = ["case", "ranks", "sent MB", "shards sent", "extra shards", "resident MB", "peer's",
               "page faults", "peer's", "stock's", "formulation of the peer"]
    lines = [[row["case"], row["ranks"], number(row, "sent_bytes", "{:.1f}", 1e-6),
              "{:.2f}".format(row["sent_bytes"] / row["shard_bytes"]) if "sent_bytes" in row
              else "-", number(row, "extra_shards"),
              number(row, "ours_resident_bytes", "{:.0f}", 1e-6),
              number(row, "peer_resident_bytes", "{:.0f}", 1e-6),
              number(row, "ours_page_faults", "{:.0f}"), number(row, "peer_page_faults", "{:.0f}"),
              number(row, "stock_page_faults", "{:.0f}"),
              f"{row['peer']}: {row['formulation']}" if "formulation" in row else row["peer"]]
             for row in rows if row["kind"] == "module"]
    return table("Memory and messages of a rank. A shard is its part of the pair tensor; extra is "
                 "the peak of our account\nbeyond inputs and the result; resident is the whole "
                 "process.", columns, lines)


def products(rows, kind, title):
    columns = ["case", "library" if kind == "product" else "flags", "ms", "GFLOP/s", "of peak",
               "spread", "check"]
    lines = [[row["case"], row["library"], row["missing"] or milliseconds(row, "ours_seconds"),
              number(row, "gflops", "{:.0f}"), percent(row, "share_of_peak"),
              percent(row, "ours_spread"), row.get("checked", "-")]
             for row in rows if row["kind"] == kind]
    return table(title, columns, lines)


def flags_spread(rows):
    lines = []
    for name in dict.fromkeys(row["case"] for row in rows if row["kind"] == "flags"):
        rates = [row["gflops"] for row in rows if row["case"] == name and "gflops" in row]
        if rates:
            lines.append(f"{name}: the slowest is {100 * (1 - min(rates) / max(rates)):.0f} % "
                         "below the fastest")
    return lines


def scaling(rows, cores):
    """Ratios between our own times."""
    times = {(row["module"], row["pass"], row["tokens"], row["ranks"]): row["ours_seconds"]
             for row in rows if row["kind"] == "module" and "ours_seconds" in row}
    lines = []
    for (module, which, tokens, ranks), seconds in times.items():
        for fewer in (1, 2):
            before = times.get((module, which, tokens, fewer))
            if before and (fewer, ranks) in ((1, 2), (2, 4)):
                lines.append([f"{module}/{which}/{tokens}", f"{ranks} by {fewer}",
                              f"{before / seconds:.2f}", f"{seconds / before:.2f}"])
    found = table(f"Ranks on {cores} cores, our own times.",
                  ["case", "ranks", "speed-up", "slower"], lines)
    barriers = [[row["case"], number(row, "ours_seconds", "{:.1f}", 1e6),
                 number(row, "ours_best", "{:.1f}", 1e6)] for row in rows
                if row["kind"] == "barrier"]
    return found + table(f"Barrier of the library's own wait, {cores} cores.",
                         ["ranks", "mean us", "best us"], barriers)


def versions(rows):
    return "; ".join(dict.fromkeys(f"{row['library']} {row['version']}" for row in rows
                                   if row["kind"] == "product" and row.get("version")))


def text(head, rows, cores):
    width = max(len(what) for what, _ in head)
    if versions(rows):
        head = head + [("products", versions(rows))]
    return "\n".join(
        [f"{what.ljust(width)}  {which}" for what, which in head]
        + products(rows, "product", "Products, one thread, fp32.") + module_times(rows)
        + module_memory(rows) + scaling(rows, cores)
        + products(rows, "flags", "Our products, by compiler and flags.") + flags_spread(rows))


# ---- files ---------------------------------------------------------------------------------------
def write(options, head, rows, words):
    path = options.csv or os.path.join(options.results, "results.csv")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    with open(path, "w", newline="") as file:
        for what, which in head:
            file.write(f"# {what}: {which}\n")
        writer = csv.DictWriter(file, keys, restval="")
        writer.writeheader()
        writer.writerows(rows)
    with open(os.path.join(options.results, "table.txt"), "w") as file:
        file.write(words + "\n")
    with open(os.path.join(options.results, "results.svg"), "w") as file:
        file.write(plot.svg(rows))
