"""A stand-in for an LLM server's metrics page, as long as vLLM's: mostly histogram buckets, counters that grow."""

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LABELS = 'engine="0",model_name="meta-llama/Llama-3.1-8B"'
HISTOGRAMS = [
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "iteration_tokens_total",
    "request_max_num_generation_tokens",
    "request_params_n",
    "request_params_max_tokens",
]
BUCKETS = 60


def page(seconds: float) -> str:
    """The page after so many seconds of work: about 100 kB."""
    lines = [
        f'vllm:cache_config_info{{{LABELS},block_size="16",num_gpu_blocks="27000",gpu_memory_utilization="0.9"}} 1.0',
        f"vllm:num_requests_running{{{LABELS}}} {32 + int(seconds) % 7}",
        f"vllm:num_requests_waiting{{{LABELS}}} 0.0",
        f"vllm:kv_cache_usage_perc{{{LABELS}}} 0.41",
        f"vllm:generation_tokens_total{{{LABELS}}} {int(seconds * 1500)}",
        f"vllm:prompt_tokens_total{{{LABELS}}} {int(seconds * 4000)}",
        f"vllm:num_preemptions_total{{{LABELS}}} 0.0",
        f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} {int(seconds * 3)}',
        f'vllm:request_success_total{{{LABELS},finished_reason="length"}} {int(seconds)}',
    ]
    for name in HISTOGRAMS:
        lines += [f"# HELP vllm:{name} Histogram of {name}.", f"# TYPE vllm:{name} histogram"]
        lines += [
            f'vllm:{name}_bucket{{{LABELS},le="{0.001 * 1.2**step:.6g}"}} {int(seconds * step)}'
            for step in range(BUCKETS)
        ]
        lines += [
            f"vllm:{name}_count{{{LABELS}}} {int(seconds * 60)}",
            f"vllm:{name}_sum{{{LABELS}}} {seconds * 1.7}",
        ]
    return "\n".join(lines) + "\n"


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = page(time.monotonic()).encode()
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Nothing."""


def serve(port: int) -> None:
    """Until killed."""
    ThreadingHTTPServer(("127.0.0.1", port), _Page).serve_forever()
