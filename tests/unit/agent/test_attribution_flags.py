"""Command lines of LLM servers: what is kept, what defaults mean, and that no secret comes out."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.attribution.flags import ServingFlags, environ_keys, parse

SECRET = "sk-proj-4f9a8b7c6d5e"


def flags(line: str, **environ: str) -> ServingFlags:
    found = parse(line.split(), environ)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("line", "kind", "model", "port", "path"),
    [
        ("vllm serve meta-llama/Llama-3.1-8B", "vllm", "meta-llama/Llama-3.1-8B", 8000, "/metrics"),
        ("/usr/bin/python3 /usr/local/bin/vllm serve /models/l", "vllm", "/models/l", 8000, "/metrics"),
        ("python -m vllm.entrypoints.openai.api_server --model m", "vllm", "m", 8000, "/metrics"),
        ("python3.12 -u -X dev -m vllm.entrypoints.openai.api_server --model=m", "vllm", "m", 8000, "/metrics"),
        ("python /src/vllm/entrypoints/openai/api_server.py --model m", "vllm", "m", 8000, "/metrics"),
        ("python3 -m sglang.launch_server --model-path m --enable-metrics", "sglang", "m", 30000, "/metrics"),
        ("sglang serve --model-path m", "sglang", "m", 30000, None),
        ("text-generation-launcher --model-id m", "tgi", "m", 3000, "/metrics"),
        ("python3 /opt/bin/text-generation-server serve m --json-output", "tgi", "m", 80, "/metrics"),
        ("trtllm-serve m --backend pytorch", "trtllm", "m", 8000, "/prometheus/metrics"),
        ("trtllm-serve serve m", "trtllm", "m", 8000, "/prometheus/metrics"),
        ("tritonserver --model-repository=/models", "trtllm", None, 8002, "/metrics"),
        ("llama-server -m /m/l.gguf --metrics", "llamacpp", "/m/l.gguf", 8080, "/metrics"),
        ("/app/llama-server -hf ggml-org/gemma:Q4_K_M", "llamacpp", "ggml-org/gemma:Q4_K_M", 8080, None),
    ],
)  # fmt: skip
def test_each_engine_is_known_by_its_program_with_its_own_defaults(
    line: str, kind: str, model: str | None, port: int, path: str | None
) -> None:
    found = flags(line)
    assert (found.kind, found.model, found.port, found.metrics_path) == (kind, model, port, path)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "python train.py --model m --port 8000",
        "python -c import_vllm serve m",
        "python -m vllm.entrypoints.cli.main bench serve",
        "vllm bench serve --model m",
        "vllm",
        "python",
        "python -m",
        "trtllm-serve disaggregated -c conf.yaml",
        "bash -c vllm serve m",
        "text-generation-server download-weights m",
        "VLLM::Worker_TP0",
    ],
)
def test_other_command_lines_are_no_server(line: str) -> None:
    assert parse(line.split()) is None


def test_vllm_flags_in_every_spelling() -> None:
    found = flags(
        "vllm serve m --host 0.0.0.0 --port=9000 -tp 4 -pp=2 --max_num_seqs 64 --max-model-len 32k -q fp8"
        " --gpu-memory-utilization 0.85 --gpu-memory-utilization .92 --dtype bfloat16 --kv-cache-dtype fp8_e5m2"
        " --no-enable-prefix-caching --enforce-eager --cpu-offload-gb 4 --served-model-name a b"
    )
    assert (found.model, found.host, found.port) == ("m", None, 9000)
    assert found.settings == {
        "cpu_offload_gb": "4",
        "dtype": "bfloat16",
        "enable_prefix_caching": "false",
        "enforce_eager": "true",
        "gpu_memory_utilization": ".92",
        "kv_cache_dtype": "fp8_e5m2",
        "max_model_len": "32000",
        "max_num_seqs": "64",
        "pipeline_parallel_size": "2",
        "quantization": "fp8",
        "served_model_name": "a",
        "tensor_parallel_size": "4",
    }


def test_a_speculative_configuration_gives_three_facts_and_no_more() -> None:
    told = {"method": "eagle3", "model": "org/eagle", "num_speculative_tokens": 3, "token": SECRET}
    found = parse(["vllm", "serve", "m", "--speculative-config", json.dumps(told)])
    assert found is not None
    assert found.settings == {
        "num_speculative_tokens": "3",
        "speculative_method": "eagle3",
        "speculative_model": "org/eagle",
    }


def test_engines_that_mean_the_same_get_the_same_key() -> None:
    sglang = flags(
        "python -m sglang.launch_server --model-path m --tp 8 --dp-size 2 --max-running-requests 96"
        " --context-length 8192 --disable-radix-cache --disable-cuda-graph --mem-fraction-static 0.88"
        " --host 127.0.0.1"
    )
    assert sglang.host == "127.0.0.1"
    assert sglang.settings == {
        "data_parallel_size": "2",
        "enable_prefix_caching": "false",
        "enforce_eager": "true",
        "max_model_len": "8192",
        "max_num_seqs": "96",
        "mem_fraction_static": "0.88",
        "tensor_parallel_size": "8",
    }
    tgi = flags("text-generation-launcher --model-id m --num-shard 2 --max-batch-size 32 --quantize awq")
    assert tgi.settings == {"max_num_seqs": "32", "quantization": "awq", "tensor_parallel_size": "2"}
    trtllm = flags("trtllm-serve m --max_batch_size 64 --tp_size 2 --kv_cache_free_gpu_memory_fraction 0.9")
    assert trtllm.settings == {
        "kv_cache_free_gpu_memory_fraction": "0.9",
        "max_num_seqs": "64",
        "tensor_parallel_size": "2",
    }
    llama = flags("llama-server -m l.gguf -np 4 -c 32768 -ngl 99 -ctk q8_0 -ctv q8_0 -fa on -nocb")
    assert llama.settings == {
        "cache_type_k": "q8_0",
        "cache_type_v": "q8_0",
        "continuous_batching": "false",
        "ctx_size": "32768",
        "flash_attn": "on",
        "max_num_seqs": "4",
        "n_gpu_layers": "99",
    }


def test_what_a_flag_leaves_to_the_engine_is_unknown() -> None:
    found = flags("llama-server -m l.gguf -np -1 -ngl auto --metrics")
    assert "max_num_seqs" not in found.settings
    assert flags("vllm serve m --max-model-len auto").settings == {}


def test_a_server_without_a_port_of_its_own_has_none() -> None:
    assert flags("vllm serve m --headless").port is None
    assert flags("vllm serve m --uds /run/v.sock").port is None
    assert flags("vllm serve m --port 70000").port is None


def test_metrics_that_are_switched_off_have_no_path() -> None:
    assert flags("tritonserver --allow-metrics=false").metrics_path is None
    assert flags("tritonserver --metrics-port 9002").port == 9002
    assert flags("llama-server --metrics --api-prefix /llm").metrics_path == "/llm/metrics"


def test_a_variable_stands_for_a_flag_and_the_flag_goes_first() -> None:
    words = ["text-generation-launcher", "--num-shard", "2"]
    assert {"PORT", "MODEL_ID", "NUM_SHARD"} <= set(environ_keys(words))
    found = parse(words, {"PORT": "80", "MODEL_ID": "org/m", "NUM_SHARD": "4", "HF_TOKEN": SECRET})
    assert found is not None
    assert (found.model, found.port, found.settings) == ("org/m", 80, {"tensor_parallel_size": "2"})
    assert flags("llama-server", LLAMA_ARG_ENDPOINT_METRICS="1").metrics_path == "/metrics"
    assert environ_keys(["python", "train.py"]) == ()


def test_tgi_listens_everywhere_when_its_host_is_a_name() -> None:
    assert flags("text-generation-launcher --hostname a1b2c3d4", HOSTNAME="a1b2c3d4").host is None
    assert flags("text-generation-launcher --hostname 10.0.0.3").host == "10.0.0.3"


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve m --api-key {}",
        "vllm serve --api-key {} {} m",
        "vllm serve --hf-token {} --api-key={}",
        "vllm serve m --dtype {}",
        "vllm serve {}",
        "vllm serve m --model {}",
        "vllm serve m --unknown x {}",
        "vllm serve m --served-model-name a {}",
        "vllm serve m --port {} --max-num-seqs {}",
        "vllm serve m --speculative-config {}",
        'vllm serve m --speculative-config {{"model":"{}"}}',
        "vllm serve m --ssl-keyfile {}",
        "vllm serve https://user:{}@host/m",
        "vllm serve https://host/m?token={}",
        "python -m sglang.launch_server --model-path m --api-key {} --admin-api-key {}",
        "text-generation-launcher --model-id m --api-key {}",
        "trtllm-serve m --log_level {}",
        "trtllm-serve --log_level {} m",
        "tritonserver --model-repository=s3://user:{}@host/models --http-restricted-api x={}",
        "llama-server -m l --api-key {} --hf-token {} -mu https://x/{}",
    ],
)
def test_a_secret_never_comes_out(line: str) -> None:
    found = parse(line.format(*[SECRET] * line.count("{}")).split())
    assert found is not None
    assert SECRET not in json.dumps(asdict(found))


def test_a_secret_of_no_known_shape_never_comes_out_of_a_flag_that_is_not_listed() -> None:
    for line in ("vllm serve --api-key {} x", "vllm serve m --api-key a {}", "trtllm-serve m --key {}"):
        assert "hunter2secret" not in json.dumps(asdict(flags(line.format("hunter2secret"))))


WORDS = st.one_of(
    st.sampled_from(["--model", "-tp", "--port", "--api-key", "-m", "serve", "--speculative-config", "{}", "[1]", "-"]),
    st.text(max_size=12),
)  # fmt: skip


@given(st.sampled_from(["vllm", "python", "trtllm-serve", "llama-server"]), st.lists(WORDS, max_size=8))
def test_no_command_line_raises(program: str, rest: list[str]) -> None:
    parse([program, *rest])
    parse([program, "serve", *rest])


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8), st.booleans())
def test_the_word_after_an_unlisted_flag_is_dropped(secret: str, first: bool) -> None:
    tail = ["--x-secret", f"S{secret}S"]
    words = ["vllm", "serve", *tail, "--dtype", "half"] if first else ["vllm", "serve", "m", *tail]
    found = parse(words)
    assert found is not None
    assert f"S{secret}S" not in json.dumps(asdict(found))
