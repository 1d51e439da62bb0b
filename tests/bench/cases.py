"""What is measured: cases, their operations, and how far their numbers may be apart.

Operations are counted as multiplications and additions of products, for 128 channels, a hidden
size of 512, four heads of 32, per pair of tokens:

    triangle multiplication   p_in, g_in 2 * 2C * 2C, p_out, g_out 2 * 2C * C    12 C^2 = 196608
                              planes                                        2 N C = 256 N
    transition                three products of C by 4C                     24 C^2 = 393216
    triangle attention        q, k, v, g, o 10 C^2, bias 2 H C                       164864
                              scores and values                             4 N C = 512 N
    pair block                two of each triangle, one transition

Backward has twice the products of forward, attention's core 2.5 times (scores are formed again in
any implementation that does not keep them). What an implementation computes again beyond that is
not counted: the rate is that of useful work.
"""

import dataclasses
import math
import re

CHANNELS, HEADS, HIDDEN = 128, 4, 512
FORWARD, BOTH, INFER = "forward", "both", "infer"
SWEEP = (16, 17, 33, 64, 100, 128, 192, 256, 384)
TRIANGLES = ("triangle_outgoing", "triangle_incoming")
ATTENTIONS = ("triangle_attention_starting", "triangle_attention_ending")


# ---- operations ----------------------------------------------------------------------------------
def linear_flops(module):
    """Per pair, forward."""
    if module in TRIANGLES:
        return 12 * CHANNELS**2
    if module in ATTENTIONS:
        return 10 * CHANNELS**2 + 2 * HEADS * CHANNELS
    return 6 * CHANNELS * HIDDEN


def flops(module, which, tokens):
    if module == "pair_block":
        return sum(flops(part, which, tokens) for part in TRIANGLES + ATTENTIONS + ("transition",))
    backward = which == BOTH
    per_pair = linear_flops(module) * (3 if backward else 1)
    if module in TRIANGLES:
        per_pair += 2 * tokens * CHANNELS * (3 if backward else 1)
    if module in ATTENTIONS:
        per_pair += 4 * tokens * CHANNELS * (3.5 if backward else 1)
    return per_pair * tokens**2


# ---- numbers -------------------------------------------------------------------------------------
def tolerance(module, name, tokens):
    """Of the norm of a result, relative. A sum of K rounded terms is off by sqrt(K) 2^-24 of the
    root of their squares, in expectation; a result has as many sums behind it as `depth`; and
    both sides are off. Parameter gradients sum over all pairs."""
    depth = (8 if name == "y" else 16) * (5 if module == "pair_block" else 1)
    terms = tokens**2 if name.startswith("d ") else max(HIDDEN, tokens)
    return 2 * depth * math.sqrt(max(terms, HIDDEN)) * 2.0**-24


def deviation(module, tokens, ours, reference):
    """The worst result as (share of its tolerance, name, error, tolerance); single elements may be
    off by eight times the tolerance of the norm, in units of the root mean square."""
    worst = (0.0, "nothing", 0.0, 0.0)
    for name in sorted(ours.keys() & reference.keys()):
        (size, norm, *elements), (other_size, other_norm, *others) = ours[name], reference[name]
        if size != other_size:
            return (math.inf, name, math.inf, 0.0)
        allowed = tolerance(module, name, tokens)
        scale = other_norm / math.sqrt(size)
        apart = max(abs(a - b) for a, b in zip(elements, others)) / scale
        for error, limit in ((abs(norm - other_norm) / other_norm, allowed), (apart, 8 * allowed)):
            share = error / limit if error == error else math.inf
            if share >= worst[0]:
                worst = (share, name, error, limit)
    return worst


def is_digest(name):
    return name in ("y", "dx") or name.startswith("d ")


# ---- cases ---------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Case:
    """`kind` is module, product, flags or barrier; of a product, `module` is its shape."""

    kind: str
    module: str
    which: str = ""
    tokens: int = 0
    ranks: tuple = (1,)

    @property
    def own_passes(self):
        """Of this library; forward without anything kept beside the one that keeps."""
        return [self.which] + [INFER] * (self.which == FORWARD)

    @property
    def name(self):
        words = {"module": [self.module, self.which, str(self.tokens)],
                 "barrier": ["barrier", str(self.ranks[0])]}
        return "/".join(words.get(self.kind, [self.kind, self.module]))


def module_cases(quick):
    """Several ranks at one size; the sweep on one."""
    found = []
    for which in (FORWARD, BOTH):
        for module in TRIANGLES + ATTENTIONS + ("transition", "pair_block"):
            few = {"triangle_incoming": (17, 128, 256), "triangle_attention_ending": (17, 128, 256),
                   "pair_block": (64, 128, 256)}
            for tokens in (64, 128) if quick else few.get(module, SWEEP):
                ranks = (1, 2, 4) if tokens == (128 if quick else 256) else (1,)
                found.append(Case("module", module, which, tokens, ranks))
    return found


PRODUCTS = ("in_cache", "streaming", "weight_gradient", "planes_nt_128", "planes_tn_128",
            "planes_nn_128", "planes_nt_256")


def all_cases(quick):
    return ([Case("product", shape) for shape in PRODUCTS]
            + [Case("barrier", "barrier", ranks=(ranks,)) for ranks in (2, 4)]
            + module_cases(quick)
            + [Case("flags", shape) for shape in ("in_cache", "streaming")])


def tiny_cases():
    """Seconds, for the test of the bench itself."""
    modules = TRIANGLES + ATTENTIONS + ("transition", "pair_block")
    return ([Case("product", "tiny"), Case("barrier", "barrier", ranks=(2,))]
            + [Case("module", module, which, 8,
                    (1, 2) if (module, which) == (modules[0], BOTH) else (1,))
               for module in modules for which in (FORWARD, BOTH)])


def select(cases, filters):
    """The cases in whose name a filter, a regular expression, is found; those of flags only when
    asked for."""
    if not filters:
        return [case for case in cases if case.kind != "flags"]
    return [case for case in cases if any(re.search(word, case.name) for word in filters)]
