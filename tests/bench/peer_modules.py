"""The modules of peer.py, each in every formulation that may be the fastest.

A formulation is a function of parameters, x [1, N, N, C] and mask [1, N, N]; the first of each
module is how the models publish it. Where no gradient is asked for, gates work in place and rows
are treated in chunks that stay in the cache, as one would write it for speed; with gradients,
autograd keeps what it needs.
"""

import functools

import torch
import torch.nn.functional as F

CHANNELS, HEADS, HEAD, HIDDEN = 128, 4, 32, 512
INFINITY = 1e9
CHUNK = 1024  # positions that are treated at once: their hidden channels are 2 MB


# ---- parameters, in registration order -----------------------------------------------------------
def norm_shapes(name):
    return [(f"{name}.weight", (CHANNELS,)), (f"{name}.bias", (CHANNELS,))]


def transition_shapes():
    return norm_shapes("norm") + [("fc1.weight", (HIDDEN, CHANNELS)),
                                  ("fc2.weight", (HIDDEN, CHANNELS)),
                                  ("fc3.weight", (CHANNELS, HIDDEN))]


def triangle_shapes():
    double, square = (2 * CHANNELS, CHANNELS), (CHANNELS, CHANNELS)
    return (norm_shapes("norm_in") + [("p_in.weight", double), ("g_in.weight", double)]
            + norm_shapes("norm_out") + [("p_out.weight", square), ("g_out.weight", square)])


def attention_shapes():
    square = (HEADS * HEAD, CHANNELS)
    return (norm_shapes("layer_norm") + [("linear.weight", (HEADS, CHANNELS))]
            + [(f"mha.linear_{letter}.weight", square) for letter in "qkvog"])


# ---- pieces --------------------------------------------------------------------------------------
def layer_norm(p, name, x):
    return F.layer_norm(x, (CHANNELS,), p[name + ".weight"], p[name + ".bias"], 1e-5)


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"])


def gated(value, gate):
    if torch.is_grad_enabled():
        return value * torch.sigmoid(gate)
    return gate.sigmoid_().mul_(value)


def added(x, y):
    return x + y if torch.is_grad_enabled() else y.add_(x)


def row_chunks(tokens):
    rows = max(1, CHUNK // tokens)
    return [slice(i, min(i + rows, tokens)) for i in range(0, tokens, rows)]


# ---- transition ----------------------------------------------------------------------------------
def transition_plain(p, x, mask):
    u = layer_norm(p, "norm", x)
    h1, h2 = linear(p, "fc1", u), linear(p, "fc2", u)
    if torch.is_grad_enabled():
        return linear(p, "fc3", F.silu(h1) * h2)
    return linear(p, "fc3", F.silu(h1, inplace=True).mul_(h2))


def transition_one_product(p, x, mask):
    both = torch.cat((p["fc1.weight"], p["fc2.weight"]))
    h1, h2 = F.linear(layer_norm(p, "norm", x), both).chunk(2, dim=-1)
    return linear(p, "fc3", F.silu(h1) * h2)


def transition_chunked(p, x, mask):
    y = torch.empty_like(x)
    for rows in row_chunks(x.shape[1]):
        y[:, rows] = transition_plain(p, x[:, rows], mask)
    return y


# ---- triangle multiplication ---------------------------------------------------------------------
def triangle_end(p, o, u):
    return gated(linear(p, "p_out", layer_norm(p, "norm_out", o)), linear(p, "g_out", u))


def triangle_front(p, u, mask):
    return gated(linear(p, "p_in", u), linear(p, "g_in", u)) * mask.unsqueeze(-1)


def planes_product(outgoing, a, b):
    """[C, N, N] planes."""
    return torch.bmm(a, b.transpose(1, 2)) if outgoing else torch.bmm(a.transpose(1, 2), b)


def triangle_einsum(outgoing, p, x, mask):
    u = layer_norm(p, "norm_in", x)
    a, b = triangle_front(p, u, mask).chunk(2, dim=-1)
    o = torch.einsum("bikd,bjkd->bijd" if outgoing else "bkid,bkjd->bijd", a, b)
    return triangle_end(p, o, u)


def triangle_planes(outgoing, p, x, mask):
    u = layer_norm(p, "norm_in", x)
    t = triangle_front(p, u, mask)[0].permute(2, 0, 1).contiguous()
    o = planes_product(outgoing, t[:CHANNELS], t[CHANNELS:])
    return triangle_end(p, o.permute(1, 2, 0).unsqueeze(0).contiguous(), u)


def triangle_channels_first(outgoing, p, x, mask):
    """The projections give planes at once."""
    tokens = x.shape[1]
    u = layer_norm(p, "norm_in", x)
    turned = u.reshape(-1, CHANNELS).t()
    t = gated(torch.mm(p["p_in.weight"], turned), torch.mm(p["g_in.weight"], turned))
    t = (t * mask.reshape(1, -1)).view(2 * CHANNELS, tokens, tokens)
    o = planes_product(outgoing, t[:CHANNELS], t[CHANNELS:])
    return triangle_end(p, o.view(CHANNELS, -1).t().contiguous().view(x.shape), u)


def triangle_chunked(outgoing, p, x, mask):
    tokens = x.shape[1]
    t = x.new_empty(2 * CHANNELS, tokens, tokens)
    for rows in row_chunks(tokens):
        part = triangle_front(p, layer_norm(p, "norm_in", x[0, rows]), mask[0, rows])
        t[:, rows] = part.permute(2, 0, 1)
    o = planes_product(outgoing, t[:CHANNELS], t[CHANNELS:])
    y = torch.empty_like(x)
    for rows in row_chunks(tokens):
        y[0, rows] = triangle_end(p, o[:, rows].permute(1, 2, 0).contiguous(),
                                  layer_norm(p, "norm_in", x[0, rows]))
    return y


# ---- triangle attention --------------------------------------------------------------------------
def heads(x):
    """[rows, N, heads * d] to [rows, heads, N, d]."""
    return x.view(*x.shape[:-1], HEADS, HEAD).transpose(-2, -3)


def softmax_attention(q, k, v, bias):
    scores = torch.matmul(q, k.transpose(-1, -2))
    if torch.is_grad_enabled():
        return torch.matmul(torch.softmax(scores + bias, dim=-1), v)
    return torch.matmul(torch.softmax(scores.add_(bias), dim=-1), v)


def fused_attention(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)


def attention(core, chunked, ending, p, x, mask):
    """Rows attend; of the ending node, columns."""
    x, mask = x[0], mask[0]
    if ending:
        x, mask = x.transpose(0, 1).contiguous(), mask.t()
    u = layer_norm(p, "layer_norm", x)
    bias = linear(p, "linear", u).permute(2, 0, 1).unsqueeze(0)
    of_keys = (INFINITY * (mask - 1))[:, None, None, :]

    def rows_of(part):
        q, k, v = (linear(p, f"mha.linear_{letter}", u[part]) for letter in "qkv")
        o = core(heads(q) * HEAD**-0.5, heads(k), heads(v), bias + of_keys[part])
        o = o.transpose(-2, -3).reshape(q.shape)
        return linear(p, "mha.linear_o", gated(o, linear(p, "mha.linear_g", u[part])))

    if chunked:
        rows = max(1, (1 << 20) // (HEADS * x.shape[0] ** 2))
        y = torch.cat([rows_of(slice(i, i + rows)) for i in range(0, x.shape[0], rows)])
    else:
        y = rows_of(slice(None))
    if ending:
        y = y.transpose(0, 1)
    return y.unsqueeze(0)


# ---- the table -----------------------------------------------------------------------------------
class Module:
    """Formulations by name, and those that write into a result and so have no gradients."""

    def __init__(self, shapes, with_gradients, without=None):
        self.shapes, self.with_gradients, self.without = shapes, with_gradients, without or {}

    def formulations(self, both, case, threads):
        return self.with_gradients if both else {**self.with_gradients, **self.without}


def triangle(outgoing):
    bound = functools.partial
    return Module(triangle_shapes,
                  {"einsum": bound(triangle_einsum, outgoing),
                   "planes": bound(triangle_planes, outgoing),
                   "channels first": bound(triangle_channels_first, outgoing)},
                  {"planes in chunks": bound(triangle_chunked, outgoing)})


def triangle_attention(ending):
    cores = {"softmax": softmax_attention}
    if hasattr(F, "scaled_dot_product_attention"):
        cores["fused"] = fused_attention
    return Module(attention_shapes,
                  {name + (" in chunks" if chunked else ""):
                   functools.partial(attention, core, chunked, ending)
                   for name, core in cores.items() for chunked in (False, True)})


class PairBlock:
    """The five modules with their residuals; as published, or each in its fastest formulation."""

    parts = {"tri_mul_out": "triangle_outgoing", "tri_mul_in": "triangle_incoming",
             "tri_att_start": "triangle_attention_starting",
             "tri_att_end": "triangle_attention_ending", "transition_z": "transition"}

    def shapes(self):
        return [(f"{part}.{name}", extents) for part, module in self.parts.items()
                for name, extents in MODULES[module].shapes()]

    def formulations(self, both, case, threads):
        def candidates(part, module):
            return {name: functools.partial(self.part, f, part) for name, f
                    in MODULES[module].formulations(both, case, threads).items()}

        @functools.lru_cache(None)
        def fastest(part, module):
            found = candidates(part, module)
            return found[case.fastest(found, threads)]

        def first(part, module):
            return next(iter(candidates(part, module).values()))

        def block(choose, p, x, mask):
            for part, module in self.parts.items():
                x = added(x, choose(part, module)(p, x, mask))
            return x

        return {"published": functools.partial(block, first),
                "fastest parts": functools.partial(block, fastest)}

    @staticmethod
    def part(formulation, name, p, x, mask):
        own = {key[len(name) + 1:]: value for key, value in p.items() if key.startswith(name + ".")}
        return formulation(own, x, mask)


MODULES = {
    "transition": Module(transition_shapes,
                         {"plain": transition_plain, "one product": transition_one_product},
                         {"chunks": transition_chunked}),
    "triangle_outgoing": triangle(True),
    "triangle_incoming": triangle(False),
    "triangle_attention_starting": triangle_attention(False),
    "triangle_attention_ending": triangle_attention(True),
    "pair_block": PairBlock(),
}


def parameter_shapes(module):
    return MODULES[module].shapes()
