"""Words of ``config.json``: what the families of models call one thing, and which fields change neither weights nor cache.

Source: configuration classes of Hugging Face transformers (2026-10) and ``config.json`` of the catalogue's models.
"""

import re
from collections.abc import Mapping
from typing import Final

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "model_dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads"),
    "head_dim": ("head_dim", "d_head", "kv_channels"),
    "intermediate": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k_experts"),
}
"""Our word → the words of the families, in the order they are tried."""
PLAIN: Final = frozenset(
    {"falcon", "refinedweb", "refinedwebmodel", "opt", "bloom", "gpt2", "gptj", "gpt_neox", "gpt_neo", "gpt_bigcode"}
    | {"phi", "starcoder2", "mpt", "codegen", "nemotron", "persimmon", "stablelm_epoch"}
)  # fmt: skip
"""Families with two matrices in the feed-forward; all others are gated, with three."""
TIED: Final = frozenset(
    {"gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n_text", "falcon", "opt", "bloom", "mpt", "gpt2", "gpt_neo"}
    | {"gpt_bigcode", "cohere", "cohere2", "starcoder2"}
)  # fmt: skip
"""Families whose output head is the embedding unless the configuration says otherwise."""
OTHER_CACHE: Final = (
    "hybrid_override_pattern", "mamba_d_state", "mamba_num_heads", "ssm_cfg", "state_size", "ssm_state_size",
    "attn_layer_period", "linear_num_value_heads", "linear_attn_config", "attn_type_list", "rwkv_version",
)  # fmt: skip
"""Fields of models some of whose layers keep a state instead of a KV cache."""
LOCAL: Final = frozenset({"sliding_attention", "chunked_attention", "local_attention", "local"})
GLOBAL: Final = frozenset({"full_attention", "global_attention", "attention", "global"})
SHARED: Final = (
    "quantization_config",
    "torch_dtype",
    "dtype",
    "model_type",
    "architectures",
    "tie_word_embeddings",
    "_name_or_path",
)
"""Fields of the outer level that also speak for the language model."""
READ: Final = frozenset(
    {name for names in NAMES.values() for name in names}
    | {*SHARED, "layer_types", "attn_config", "is_encoder_decoder", "sliding_window", "use_sliding_window"}
    | {"attention_chunk_size", "sliding_window_pattern", "_sliding_window_pattern", "max_window_layers"}
    | {"max_position_embeddings", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"}
    | {"intermediate_size_mlp", "moe_intermediate_size", "shared_expert_intermediate_size", "n_shared_experts"}
    | {"num_shared_experts", "mlp_only_layers", "interleave_moe_layer_step", "decoder_sparse_step"}
    | {"first_k_dense_replace", "multi_query", "new_decoder_architecture"}
)  # fmt: skip
"""Fields that the reader looks at."""
HARMLESS: Final = re.compile(
    r"_.*|.*(?:token_id|token_index|_id|dropout|pdrop|drop_rate|norm_eps|epsilon|_eps|initializer_range|init_std|bias|scale|scaling|factor)"
    r"|rope_.*|rotary_.*|partial_rotary_factor|no_rope_.*|use_.*|output_.*|return_.*|router_.*|norm_.*|normalization_.*|query_pre_attn_.*"
    r"|hidden_act.*|activation.*|scoring_func|topk_.*|topk|n_group|moe_layer_freq|moe_layers|ep_size|aux_.*|seq_aux|routed_.*"
    r"|transformers_version|auto_map|pretraining_tp|attn_implementation|cache_implementation|max_.*|n_positions|n_ctx|seq_length"
    r"|alibi|parallel_attn|qk_layernorm|qk_norm|apply_.*|.*softcapping|.*_config|vision_.*|audio_.*|image_.*|video_.*|boi_.*|eoi_.*"
    r"|mm_.*|pad_.*|bos_.*|eos_.*|sep_.*|unk_.*|tokenizer_.*|for_llm_.*|attn_temperature_tuning|floor_scale|swiglu_limit"
    r"|initial_context_length|original_max_.*|embd_layer|resid_.*|summary_.*|task_specific_.*|problem_type|label2id|id2label"
    r"|word_embed_proj_dim|do_layer_norm_before|layerdrop|enable_bias|layer_norm_.*|rms_norm.*|attention_.*|mlp_bias|logit_scale|chunk_size_.*"
    r"|final_logit_.*|reorder_.*|scale_attn_.*|type_vocab_size|head_dim_.*|is_.*|expansion_ratio|no_bias|verbose|learned_pos_emb|emb_.*"
)
"""Fields that change neither the number of weights by much nor the cache."""
