"""Models of text, from the definitions of their architectures."""

from __future__ import annotations

from deft_horovod.workloads.workload import Layer, LayerTensor, Workload, tensors_of


def _linear(layer: str, inputs: int, outputs: int) -> tuple[LayerTensor, ...]:
    return LayerTensor(f"{layer}_weight", inputs * outputs), LayerTensor(f"{layer}_bias", outputs)


def _norm(layer: str, width: int) -> tuple[LayerTensor, ...]:
    return LayerTensor(f"{layer}_weight", width), LayerTensor(f"{layer}_bias", width)


def bert(name: str, width: int, blocks: int, tokens: int, pretraining: bool = False) -> Workload:
    """BERT (Devlin et al., NAACL 2019) with its vocabulary of 30,522 words.

    `pretraining` adds the heads for masked words, which share the embedding, and for the next
    sentence; without them it is the encoder with its pooler.
    """
    words, places = 30_522, 512
    embedding = (
        LayerTensor("words", words * width),
        LayerTensor("places", places * width),
        LayerTensor("kinds", 2 * width),
        *_norm("norm", width),
    )
    layers = [Layer("embedding", float(width), embedding)]
    for block in range(blocks):
        attention = [_linear(part, width, width) for part in ("query", "key", "value", "output")]
        inside = (*(tensor for part in attention for tensor in part), *_norm("norm", width))
        layers.append(Layer(f"attention{block}", 4.0 * width**2 + 2 * tokens * width, inside))
        feed = (*_linear("up", width, 4 * width), *_linear("down", 4 * width, width))
        layers.append(Layer(f"feed{block}", 8.0 * width**2, (*feed, *_norm("norm", width))))
    layers.append(Layer("pooler", width**2 / tokens, _linear("dense", width, width)))
    if pretraining:
        head = (*_linear("dense", width, width), *_norm("norm", width), LayerTensor("bias", words))
        shared = ("embedding.words",)
        layers.append(Layer("head", float(width**2 + words * width), head, shared))
        layers.append(Layer("next", 2 * width / tokens, _linear("dense", width, 2)))
    return Workload(name, tuple(layers))


def gpt2_of(name: str, width: int, blocks: int) -> Workload:
    words, context = 50_257, 1024
    embedding = tensors_of(wte=words * width, wpe=context * width)
    layers = [Layer("embedding", float(width), embedding)]
    for block in range(blocks):
        attention = tensors_of(
            norm_weight=width,
            norm_bias=width,
            attn_weight=3 * width**2,
            attn_bias=3 * width,
            proj_weight=width**2,
            proj_bias=width,
        )
        network = tensors_of(
            norm_weight=width,
            norm_bias=width,
            fc_weight=4 * width**2,
            fc_bias=4 * width,
            proj_weight=4 * width**2,
            proj_bias=width,
        )
        scores = 2 * context * width
        layers.append(Layer(f"attention{block}", 4.0 * width**2 + scores, attention))
        layers.append(Layer(f"mlp{block}", 8.0 * width**2, network))
    layers.append(Layer("norm", float(width), tensors_of(weight=width, bias=width)))
    layers.append(Layer("head", float(words * width), shared=("embedding.wte",)))
    return Workload(name, tuple(layers))
