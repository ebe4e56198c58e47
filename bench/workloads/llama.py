"""A decoder of Llama's shape with random weights: the same matrices, the same KV cache, nothing learned.

Decode reads the whole cache of a fixed context each step and overwrites one position of it, so that every step costs
the same and can be replayed as one CUDA graph: without that a small batch would time Python and not the card.
"""

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model (the published ones of Llama 3.2 1B and Llama 3.1 8B)."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    vocabulary: int


SHAPES: Final = {
    "1b": Shape(16, 2048, 32, 8, 64, 8192, 128_256),
    "8b": Shape(32, 4096, 32, 8, 128, 14_336, 128_256),
    "tiny": Shape(2, 64, 4, 2, 16, 128, 512),
}


class Layer:
    """Weights and KV cache of one layer."""

    def __init__(self, shape: Shape, batch: int, context: int, like: dict[str, Any]) -> None:
        width = (shape.heads + 2 * shape.kv_heads) * shape.head
        self.qkv = _weights(width, shape.hidden, like)
        self.out = _weights(shape.hidden, shape.heads * shape.head, like)
        self.gate_up = _weights(2 * shape.inner, shape.hidden, like)
        self.down = _weights(shape.hidden, shape.inner, like)
        self.norm = torch.ones(2, shape.hidden, **like)
        size = (batch, shape.kv_heads, context, shape.head)
        self.keys = torch.randn(size, **like)
        self.values = torch.randn(size, **like)


class Llama:
    """The model.

    Args:
        shape: its sizes. batch: sequences at once. context: tokens in the cache of each; 0 for prefill alone.
        device: where it lives; bf16 on a card, fp32 on a CPU.
    """

    def __init__(self, shape: Shape, batch: int, context: int, device: str) -> None:
        dtype = torch.bfloat16 if device.startswith("cuda") else torch.float32
        like = {"device": device, "dtype": dtype}
        self.shape, self.batch, self.context = shape, batch, context
        self.embedding = _weights(shape.vocabulary, shape.hidden, like)
        self.layers = [Layer(shape, batch, context, like) for _ in range(shape.layers)]
        self.norm = torch.ones(shape.hidden, **like)
        self.tokens = torch.zeros(batch, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        """Where in the cache the next token goes: on the device, so that a graph can move it."""
        self._angles = _angles(shape.head, max(context, 1), device)

    def decode(self) -> None:
        """One token for each sequence; attends to the whole cache."""
        shape, batch = self.shape, self.batch
        cos, sin = (part.index_select(0, self.place) for part in self._angles)
        x = self.embedding.index_select(0, self.tokens)
        for layer in self.layers:
            q, k, v = self._qkv(layer, x)
            q = _turned(q.view(batch, shape.heads, shape.head), cos, sin)
            k = _turned(k.view(batch, shape.kv_heads, shape.head), cos, sin)
            layer.keys.index_copy_(2, self.place, k.unsqueeze(2))
            layer.values.index_copy_(2, self.place, v.view(batch, shape.kv_heads, 1, shape.head))
            # Heads that share a KV head stand where the query positions would: exact for one new token, and the
            # cache is read once for all of them.
            group = q.view(batch, shape.kv_heads, shape.heads // shape.kv_heads, shape.head)
            seen = functional.scaled_dot_product_attention(group, layer.keys, layer.values)
            x = x + functional.linear(seen.reshape(batch, -1), layer.out)
            x = x + self._inner(layer, x)
        logits = functional.linear(_normed(x, self.norm), self.embedding)
        self.tokens.copy_(logits.argmax(-1))
        self.place.add_(1).remainder_(self.context)

    def prefill(self, tokens: "torch.Tensor") -> "torch.Tensor":
        """Logits of the last position of each sequence; ``tokens`` is batch × length."""
        shape = self.shape
        batch, length = tokens.shape
        cos, sin = _angles(shape.head, length, str(tokens.device))
        x = functional.embedding(tokens, self.embedding)
        repeat = shape.heads // shape.kv_heads
        for layer in self.layers:
            q, k, v = self._qkv(layer, x)
            q = _turned(q.view(batch, length, shape.heads, shape.head).transpose(1, 2), cos, sin)
            k = _turned(k.view(batch, length, shape.kv_heads, shape.head).transpose(1, 2), cos, sin)
            v = v.view(batch, length, shape.kv_heads, shape.head).transpose(1, 2)
            seen = functional.scaled_dot_product_attention(
                q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), is_causal=True
            )
            x = x + functional.linear(seen.transpose(1, 2).reshape(batch, length, -1), layer.out)
            x = x + self._inner(layer, x)
        return functional.linear(_normed(x[:, -1], self.norm), self.embedding)

    def _qkv(self, layer: Layer, x: "torch.Tensor") -> tuple["torch.Tensor", ...]:
        shape = self.shape
        sizes = [shape.heads * shape.head, shape.kv_heads * shape.head, shape.kv_heads * shape.head]
        return functional.linear(_normed(x, layer.norm[0]), layer.qkv).split(sizes, -1)

    def _inner(self, layer: Layer, x: "torch.Tensor") -> "torch.Tensor":
        gate, up = functional.linear(_normed(x, layer.norm[1]), layer.gate_up).chunk(2, -1)
        return functional.linear(functional.silu(gate) * up, layer.down)


def _weights(rows: int, columns: int, like: dict[str, Any]) -> "torch.Tensor":
    # Random and small: zeros would draw less power (no bits toggle), large ones would overflow.
    return torch.randn(rows, columns, **like) * columns**-0.5


def _normed(x: "torch.Tensor", weight: "torch.Tensor") -> "torch.Tensor":
    scale = x.float().pow(2).mean(-1, keepdim=True).add(1e-5).rsqrt().to(x.dtype)
    return x * scale * weight


def _angles(head: int, length: int, device: str) -> tuple["torch.Tensor", "torch.Tensor"]:
    rates = 500_000.0 ** (-torch.arange(0, head, 2, device=device, dtype=torch.float32) / head)
    angles = torch.outer(torch.arange(length, device=device, dtype=torch.float32), rates)
    return angles.cos(), angles.sin()


def _turned(x: "torch.Tensor", cos: "torch.Tensor", sin: "torch.Tensor") -> "torch.Tensor":
    """Rotary positions; ``cos`` and ``sin`` are positions × half a head, spread over what stands before them."""
    left, right = x.float().chunk(2, -1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1).to(x.dtype)
