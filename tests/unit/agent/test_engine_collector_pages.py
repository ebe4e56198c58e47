"""A page of each engine becomes its readings, and nothing that it does not say."""

import gzip
from pathlib import Path

import engine_pages as pages
import pytest

from agent.collectors.engine_page import About, EnginePage
from agent.engines import names_by_prefix
from agent.sources.openmetrics import OpenMetrics
from agent.sources.report import FileReport
from core.readings import EngineIdentity, EngineReading

NODE = About("n1", "n1:8000")


def read(text: str, about: About = NODE) -> dict[str, tuple[EngineIdentity, dict[str, float]]]:
    things = EnginePage(about).read(text.encode(), 5)
    return {identity.engine: (identity, {} if one is None else dict(one.values)) for identity, one in things}


def test_vllm_v1_gives_all_it_has() -> None:
    identity, values = read(pages.vllm())["n1:8000/0"]
    assert values == {
        "running_requests": 3.0,
        "waiting_requests": 2.0,
        "kv_used_ratio": 0.25,
        "cached_prompt_tokens": 4000.0,
        "preemption_count": 1.0,
        "prompt_tokens": 1234567.0,
        "generated_tokens": 1000.0,
        "finished_requests": 9.0,
        "ttft_sum_s": 12.5,
        "ttft_count": 40.0,
        "itl_sum_s": 12.5,
        "itl_count": 40.0,
    }
    assert (identity.kind, identity.model, identity.host) == ("vllm", pages.MODEL, "n1")
    assert identity.settings["num_gpu_blocks"] == "27000"
    assert "sliding_window" not in identity.settings


def test_vllm_v0_names_mean_the_same() -> None:
    identity, values = read(pages.VLLM_V0)["n1:8000/0"]
    assert values["kv_used_ratio"] == 0.0125
    assert (values["itl_sum_s"], values["itl_count"]) == (0.05, 4.0)
    assert values["running_requests"] == 12.0
    assert identity.settings["block_size"] == "16"
    assert "num_gpu_blocks_override" not in identity.settings
    assert identity.model == "facebook/opt-1.3b"


def test_engines_of_one_server_are_never_summed() -> None:
    text = pages.vllm(0, 1).replace(
        f'num_requests_running{{engine="1",model_name="{pages.MODEL}"}} 3',
        f'num_requests_running{{engine="1",model_name="{pages.MODEL}"}} 8',
    )
    found = read(text)
    assert set(found) == {"n1:8000/0", "n1:8000/1"}
    assert [values["running_requests"] for _identity, values in found.values()] == [3.0, 8.0]


def test_other_ranks_of_sglang_are_left_out() -> None:
    identity, values = read(pages.SGLANG)["n1:8000/0"]
    assert values["running_requests"] == 5.0
    assert values["generated_tokens"] == 7557.0
    assert identity.settings == {"max_total_num_tokens": "1234567", "num_pages": "77160", "page_size": "16"}


def test_what_a_server_counts_for_all_its_engines_belongs_to_none() -> None:
    found = read(pages.SGLANG_DP)
    assert found["n1:8000/0"][1] == {"running_requests": 5.0}
    assert found["n1:8000/1"][1] == {"running_requests": 7.0}
    assert found["n1:8000/1"][0].settings["num_pages"] == "77160"


def test_tgi_says_no_model_and_takes_that_of_its_flags() -> None:
    about = About("n1", "n1:80", "mistralai/Mistral-7B", {"max_batch_total_tokens": "16000"}, ("GPU-1",))
    identity, values = read(pages.TGI, about)["n1:80/0"]
    assert identity == EngineIdentity(
        "n1:80/0", "n1", "tgi", "mistralai/Mistral-7B", {"max_batch_total_tokens": "16000"}, ("GPU-1",)
    )
    assert values == {
        "running_requests": 4.0,
        "waiting_requests": 0.0,
        "finished_requests": 90.0,
        "generated_tokens": 4500.0,
        "prompt_tokens": 9000.0,
        "itl_sum_s": 1.8,
        "itl_count": 90.0,
    }


def test_published_settings_go_before_flags() -> None:
    about = About("n1", "n1:8000", "flag", {"max_num_seqs": "1", "tensor_parallel_size": "2"})
    identity, values = read(pages.TRTLLM, about)["n1:8000/0"]
    assert identity.settings == {
        "max_num_seqs": "64",
        "tensor_parallel_size": "2",
        "num_gpu_blocks": "4096",
        "block_size": "32",
        "dtype": "bfloat16",
        "quantization": "FP8",
    }
    assert identity.model == "llama"
    assert values["finished_requests"] == 7.0


def test_triton_gives_its_llm_only() -> None:
    identity, values = read(pages.TRITON)["n1:8000/0"]
    assert values == {"running_requests": 6.0, "waiting_requests": 0.0, "kv_used_ratio": 0.125}
    assert identity.settings == {"max_num_seqs": "512", "num_gpu_blocks": "6239", "block_size": "64"}


def test_two_models_of_one_server_stay_apart_and_keep_their_names() -> None:
    both = pages.TRITON + pages.TRITON.replace('model="tensorrt_llm"', 'model="draft"').replace("} 6", "} 2")
    page = EnginePage(NODE)
    for _ in range(2):
        found = {one.engine: reading for one, reading in page.read(both.encode(), 5)}
        assert set(found) == {"n1:8000/0", "n1:8000/0-draft"}
    draft = found["n1:8000/0-draft"]
    assert draft is not None
    assert draft.values["running_requests"] == 2.0


def test_an_engine_keeps_its_name_when_its_model_becomes_known() -> None:
    page = EnginePage(NODE)
    line = 'vllm:cache_config_info{block_size="16"} 1.0\n'
    for text in (line, line + 'vllm:num_requests_running{model_name="m"} 1\n'):
        assert [identity.engine for identity, _reading in page.read(text.encode(), 1)] == ["n1:8000/0"]


def test_llamacpp_has_no_labels_at_all() -> None:
    identity, values = read(pages.LLAMACPP)["n1:8000/0"]
    assert identity.kind == "llamacpp"
    assert values == {
        "prompt_tokens": 350.0,
        "generated_tokens": 1290.0,
        "running_requests": 2.0,
        "waiting_requests": 0.0,
    }


@pytest.mark.parametrize(
    "text", ["", "{}", pages.TRTLLM_JSON, "<html>", "vllm:num_requests_running", pages.DCGM]
)
def test_other_pages_are_no_engine(text: str) -> None:
    assert read(text) == {}


def test_the_first_line_counts_and_comments_do_not() -> None:
    text = 'vllm:num_requests_running{engine="0"} 1\n# vllm:num_requests_running{engine="1"} 2\n'
    assert set(read(text)) == {"n1:8000/0"}


@pytest.mark.parametrize("figure", ["NaN", "+Inf", "-1", "1.5", "much"])
def test_a_value_that_cannot_be_true_is_unknown(figure: str) -> None:
    text = pages.vllm().replace('kv_cache_usage_perc{engine="0",', 'kv_cache_usage_perc{engine="0",x="y",')
    text = text.replace(f'x="y",model_name="{pages.MODEL}"}} 0.25', f'x="y"}} {figure}')
    values = read(text)["n1:8000/0"][1]
    assert "kv_used_ratio" not in values
    assert values["running_requests"] == 3.0


def test_two_series_that_should_be_one_are_both_not_believed() -> None:
    text = 'vllm:num_requests_running{engine="0",a="1"} 1\nvllm:num_requests_running{engine="0",a="2"} 1\nvllm:num_requests_waiting{engine="0"} 4\n'
    assert read(text)["n1:8000/0"][1] == {"waiting_requests": 4.0}


def test_labels_may_hold_braces_quotes_and_escapes() -> None:
    text = 'vllm:num_requests_running{model_name="a}\\" {b,c=\\\\",engine="1"} 7 1763700000000\n'
    identity, values = read(text)["n1:8000/1"]
    assert identity.model == 'a}" {b,c=\\'
    assert values == {"running_requests": 7.0}


def test_a_page_with_absurdly_many_engines_is_not_believed() -> None:
    assert read("".join(f'vllm:num_requests_running{{engine="{n}"}} 1\n' for n in range(300))) == {}


def test_an_engine_that_is_loaded_later_is_seen() -> None:
    page = EnginePage(NODE)
    page.read(pages.TRITON.encode(), 1)
    both = (pages.TRITON + pages.LLAMACPP).encode()
    kinds = {identity.kind for n in range(12) for identity, _reading in page.read(both, 2 + n)}
    assert kinds == {"trtllm", "llamacpp"}


def test_every_name_of_the_tables_is_found_on_a_page() -> None:
    for prefix, names in names_by_prefix().items():
        for name in names:
            if prefix == "nv_trt_llm_":
                continue  # means something by its labels only
            for suffix in ("", "_total"):
                found = read(f'{name}{suffix}{{x="y"}} 1\n')
                expected = not (suffix and name.endswith("_info"))
                assert bool(found) == expected, name + suffix


@pytest.mark.shared_data
def test_real_captures_read_the_same_as_by_the_importer(shared_data: Path) -> None:
    files = sorted((shared_data / "openmetrics").glob("*.prom.gz"))
    assert files
    for file in files:
        latest: dict[str, str] = {}
        for line in gzip.decompress(file.read_bytes()).decode().splitlines():
            if line.startswith("vllm:"):
                series, value, _stamp = line.rsplit(" ", 2)
                latest[series] = value
        text = "".join(f"{series} {value}\n" for series, value in latest.items())
        importer = OpenMetrics()
        things = [*importer.read(file, FileReport(file)), *importer.rest()]
        last = [thing for thing in things if isinstance(thing, EngineReading)][-1]
        told = [thing for thing in things if isinstance(thing, EngineIdentity)][-1]
        ((identity, reading),) = EnginePage(NODE).read(text.encode(), last.ts_ms)
        assert reading is not None
        assert reading.values == last.values
        assert (identity.model, identity.settings) == (told.model, told.settings)


@pytest.mark.shared_data
def test_real_pages_of_vllm_v0_are_read(shared_data: Path) -> None:
    files = sorted((shared_data / "bsc_h100_vllm").rglob("cache_config_server_*.txt"))
    assert files
    for file in files:
        ((identity, reading),) = EnginePage(NODE).read(file.read_bytes(), 1)
        assert identity.kind == "vllm"
        assert int(identity.settings["num_gpu_blocks"]) > 0
        # Of some runs only the line of settings was kept.
        assert (reading is not None) == (b"\nvllm:num_requests_running" in file.read_bytes())
