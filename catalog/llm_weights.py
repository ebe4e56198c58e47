"""How many weights a decoder has, from its shape.

    embedding   V·h, twice where the output head is its own
    attention   h·H·d + 2·h·H_kv·d + H·d·h        latent: h·q + q·H·(n+r) + h·(c+r) + c·H·(n+v) + H·v·h
    feed-forward   3·h·I gated, 2·h·I plain; experts: E·3·h·I_e + shared + router h·E
    norms       2·h a layer, h at the end

Biases, query/key norms and learned positions are left out: below 1 % of any model of a billion weights.
Source: the architectures' papers and published implementations; ``tests`` hold the sums to the catalogue's counts.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """What sets the number of weights. Counts and widths; 0 or None: the model has no such part.

    Attributes:
        dense_layers: layers with an ordinary feed-forward (all of a dense model). shared_intermediate: width of the experts
            every token visits. kv_rank, query_rank, rope_dim, nope_dim: of latent attention.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    is_tied: bool
    is_gated: bool
    experts: int
    experts_per_token: int
    expert_intermediate: int
    shared_intermediate: int
    dense_layers: int
    kv_rank: int | None
    query_rank: int | None
    rope_dim: int
    nope_dim: int


def parameters(shape: Shape) -> int:
    """All weights."""
    return _with_experts(shape, shape.experts)


def active_parameters(shape: Shape) -> int:
    """Weights that one token uses."""
    return _with_experts(shape, shape.experts_per_token)


def _with_experts(shape: Shape, experts: int) -> int:
    h = shape.hidden
    mixed = shape.layers - shape.dense_layers if shape.experts else 0
    expert = _feed_forward(shape, shape.expert_intermediate)
    mixture = experts * expert + _feed_forward(shape, shape.shared_intermediate) + h * shape.experts
    return (
        shape.vocabulary * h * (1 if shape.is_tied else 2)
        + shape.layers * (_attention(shape) + 2 * h)
        + (shape.layers - mixed) * _feed_forward(shape, shape.intermediate)
        + mixed * mixture
        + h
    )


def _feed_forward(shape: Shape, width: int) -> int:
    return (3 if shape.is_gated else 2) * shape.hidden * width


def _attention(shape: Shape) -> int:
    h, heads, d = shape.hidden, shape.heads, shape.head_dim
    if shape.kv_rank is None:
        return 2 * h * heads * d + 2 * h * shape.kv_heads * d
    key = heads * (shape.nope_dim + shape.rope_dim)
    query = h * key if shape.query_rank is None else shape.query_rank * (h + key)
    down = h * (shape.kv_rank + shape.rope_dim)
    up = shape.kv_rank * heads * (shape.nope_dim + d)
    return query + down + up + heads * d * h
