"""Metrics pages as engines write them, shortened; the figures are made up."""

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def vllm(
    *engines: int,
    running: float = 3,
    generated: float = 1000.0,
    model: str = MODEL,
    kv: float = 0.25,
    blocks: int = 27000,
) -> str:
    """vLLM with its V1 engine: a label ``engine`` on everything."""
    lines = [
        "# HELP python_info Python platform information",
        "# TYPE python_info gauge",
        'python_info{implementation="CPython",major="3",version="3.12.9"} 1.0',
    ]

    def family(name: str, kind: str, value: object, **more: str) -> None:
        lines.append(f"# HELP vllm:{name} Text.")
        lines.append(f"# TYPE vllm:{name} {kind}")
        suffix = "_total" if kind == "counter" else ""
        labels = "".join(f',{key}="{text}"' for key, text in more.items())
        lines.extend(
            f'vllm:{name}{suffix}{{engine="{engine}"{labels},model_name="{model}"}} {value}'
            for engine in engines or (0,)
        )

    family("num_requests_running", "gauge", running)
    family("num_requests_waiting", "gauge", 2.0)
    family("num_requests_waiting_by_reason", "gauge", 9.0, reason="capacity")
    family("engine_sleep_state", "gauge", 1.0, sleep_state="awake")
    family("kv_cache_usage_perc", "gauge", kv)
    family("prefix_cache_queries", "counter", 5000.0)
    family("prefix_cache_hits", "counter", 4000.0)
    family("num_preemptions", "counter", 1.0)
    family("prompt_tokens", "counter", 1.234567e06)
    family("generation_tokens", "counter", generated)
    lines.append(f'vllm:generation_tokens_created{{engine="0",model_name="{model}"}} 1.7637e+09')
    family("request_success", "counter", 7.0, finished_reason="stop")
    family("request_success", "counter", 2.0, finished_reason="length")
    for name in ("time_to_first_token_seconds", "inter_token_latency_seconds", "iteration_tokens_total"):
        for engine in engines or (0,):
            labels = f'engine="{engine}",model_name="{model}"'
            lines += [f'vllm:{name}_bucket{{{labels},le="{le}"}} 40.0' for le in ("0.001", "0.01", "+Inf")]
            lines += [f"vllm:{name}_count{{{labels}}} 40.0", f"vllm:{name}_sum{{{labels}}} 12.5"]
    lines.extend(
        f'vllm:cache_config_info{{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="{engine}",'
        f'gpu_memory_utilization="0.9",num_gpu_blocks="{blocks}",sliding_window="None"}} 1.0'
        for engine in engines or (0,)
    )
    return "\n".join(lines) + "\n"


VLLM_V0 = """\
# HELP vllm:num_requests_running Number of requests currently running on GPU.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="facebook/opt-1.3b"} 12.0
vllm:num_requests_swapped{model_name="facebook/opt-1.3b"} 0.0
vllm:num_requests_waiting{model_name="facebook/opt-1.3b"} 0.0
vllm:gpu_cache_usage_perc{model_name="facebook/opt-1.3b"} 0.0125
vllm:cpu_cache_usage_perc{model_name="facebook/opt-1.3b"} 0.0
vllm:gpu_prefix_cache_hit_rate{model_name="facebook/opt-1.3b"} -1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",cpu_offload_gb="0",num_gpu_blocks="2657",num_gpu_blocks_override="None"} 1.0
vllm:num_preemptions_total{model_name="facebook/opt-1.3b"} 0.0
vllm:prompt_tokens_total{model_name="facebook/opt-1.3b"} 777.0
vllm:generation_tokens_total{model_name="facebook/opt-1.3b"} 2222.0
vllm:time_per_output_token_seconds_bucket{le="0.01",model_name="facebook/opt-1.3b"} 4.0
vllm:time_per_output_token_seconds_count{model_name="facebook/opt-1.3b"} 4.0
vllm:time_per_output_token_seconds_sum{model_name="facebook/opt-1.3b"} 0.05
"""
SGLANG = """\
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="qwen",pp_rank="0",tp_rank="0"} 5.0
sglang:num_running_reqs{engine_type="unified",model_name="qwen",pp_rank="0",tp_rank="1"} 5.0
sglang:num_running_reqs{engine_type="unified",model_name="qwen",pp_rank="1",tp_rank="0"} 5.0
sglang:num_queue_reqs{engine_type="unified",model_name="qwen",pp_rank="0",tp_rank="0"} 1.0
sglang:token_usage{engine_type="unified",model_name="qwen",pp_rank="0",tp_rank="0"} 0.4
sglang:max_total_num_tokens{engine_type="unified",model_name="qwen",pp_rank="0",tp_rank="0"} 1.234567e+06
sglang:gen_throughput{engine_type="unified",model_name="qwen",pp_rank="0",tp_rank="0"} 320.0
sglang:cache_config_info{model_name="qwen",num_pages="77160",page_size="16"} 1.0
sglang:prompt_tokens_total{model_name="qwen"} 128201.0
sglang:generation_tokens_total{model_name="qwen"} 7557.0
sglang:cached_tokens_total{model_name="qwen"} 100.0
sglang:num_requests_total{model_name="qwen"} 60.0
sglang:time_to_first_token_seconds_bucket{le="0.1",model_name="qwen"} 5.0
sglang:time_to_first_token_seconds_sum{model_name="qwen"} 2.5
sglang:time_to_first_token_seconds_count{model_name="qwen"} 60.0
"""
SGLANG_DP = """\
sglang:num_running_reqs{dp_rank="0",model_name="qwen",tp_rank="0"} 5.0
sglang:num_running_reqs{dp_rank="1",model_name="qwen",tp_rank="0"} 7.0
sglang:cache_config_info{model_name="qwen",num_pages="77160",page_size="16"} 1.0
sglang:generation_tokens_total{model_name="qwen"} 7557.0
"""
TGI = """\
# HELP tgi_batch_current_size tgi_batch_current_size
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 4
# TYPE tgi_queue_size gauge
tgi_queue_size 0
# TYPE tgi_request_success counter
tgi_request_success{method="batch"} 90
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{le="1"} 3
tgi_request_generated_tokens_bucket{le="+Inf"} 90
tgi_request_generated_tokens_sum 4500
tgi_request_generated_tokens_count 90
tgi_request_input_length_sum 9000
tgi_request_input_length_count 90
tgi_request_mean_time_per_token_duration_sum 1.8
tgi_request_mean_time_per_token_duration_count 90
"""
TRTLLM = """\
# HELP trtllm_num_requests_running Number of requests running.
trtllm_num_requests_running{engine_type="pytorch",model_name="llama"} 8.0
trtllm_num_requests_waiting{engine_type="pytorch",model_name="llama"} 1.0
trtllm_kv_cache_utilization{engine_type="pytorch",model_name="llama"} 0.5
trtllm_max_batch_size_runtime{engine_type="pytorch",model_name="llama"} 64.0
trtllm_kv_cache_max_blocks{engine_type="pytorch",model_name="llama"} 4096.0
trtllm_kv_cache_tokens_per_block{engine_type="pytorch",model_name="llama"} 32.0
trtllm_model_config_info{dtype="bfloat16",model_name="llama",quantization="FP8"} 1.0
trtllm_request_success_total{finished_reason="end_id",model_name="llama"} 3.0
trtllm_request_success_total{finished_reason="length",model_name="llama"} 4.0
"""
TRTLLM_JSON = '[{"gpuMemUsage": 76665782272, "iter": 154, "numActiveRequests": 1}]'
TRITON = """\
# HELP nv_inference_request_success Number of successful inference requests
nv_inference_request_success{model="ensemble",version="1"} 44
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 0
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="context",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 6
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.125
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 6239
"""
LLAMACPP = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 350
# HELP llamacpp:tokens_predicted_total Number of generation tokens processed.
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 1290
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 2
llamacpp:requests_deferred 0
"""
LLAMACPP_PROPS = '{"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4, "model_path": "/models/qwen2.5-7b-q4_k_m.gguf"}'
GPU_A = "GPU-70ab037b-7cf4-90e7-925f-927c2f53fda0"
GPU_B = "GPU-11111111-7cf4-90e7-925f-927c2f53fda0"
DCGM = f"""\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{GPU_A}",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1"}} 97
# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned (in %).
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{{gpu="0",UUID="{GPU_A}",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1",pod="a}} b"}} 0.812500
DCGM_FI_PROF_SM_ACTIVE{{gpu="1",UUID="{GPU_B}",device="nvidia1",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1"}} 9223372036854775794
DCGM_FI_PROF_DRAM_ACTIVE{{gpu="0",UUID="{GPU_A}",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1"}} 0.4
DCGM_FI_PROF_DRAM_ACTIVE{{gpu="1",UUID="{GPU_B}",device="nvidia1",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1"}} 140737488355328.000000
DCGM_FI_PROF_DRAM_ACTIVE{{gpu="1",UUID="{GPU_B}",device="nvidia1",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="n1"}} 0.9
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{gpu="1",UUID="{GPU_B}",device="nvidia1",Hostname="n1"}} NaN
DCGM_FI_PROF_PCIE_RX_BYTES{{gpu="1",UUID="{GPU_B}",device="nvidia1",Hostname="n1"}} 123456789
DCGM_FI_PROF_PCIE_TX_BYTES{{gpu="1",UUID="{GPU_B}",device="nvidia1",Hostname="n1"}} 2147483632
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu="0",UUID="{GPU_A}",device="nvidia0",Hostname="n1"}} 0.99
"""
