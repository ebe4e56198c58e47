"""Whose GPU it was, by the labels of its series."""

import pytest

from agent.sources.workload_labels import Pod, pod_of, workload_of


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({"pod": "bert-0", "namespace": "ml"}, "ml/bert-0"),
        (
            {
                "exported_pod": "bert-0",
                "exported_namespace": "ml",
                "pod": "dcgm-exporter-x",
                "namespace": "ops",
            },
            "ml/bert-0",
        ),
        ({"pod": "dcgm-exporter-x7", "namespace": "ops"}, None),
        ({"pod": "gpu-metrics-7", "container": "nvidia-dcgm-exporter"}, None),
        ({"exported_pod": "", "pod": "metrics-1"}, None),
        ({"pod": ""}, None),
        ({}, None),
        ({"hpc_job": "4711"}, "4711"),
        ({"hpc_job": "0"}, None),
        ({"hpc_job": " "}, None),
    ],
)
def test_the_pod_or_job_that_the_exporter_names(labels: dict[str, str], key: str | None) -> None:
    found = workload_of(labels, "n1")
    assert (None if found is None else found.key) == key


def test_a_plain_pod_is_the_exporters_where_labels_are_renamed() -> None:
    assert workload_of({"pod": "bert-0"}, None, relabelled=True) is None


def test_what_is_known_of_a_pod_goes_with_it() -> None:
    found = workload_of({"pod": "bert-0", "namespace": "ml", "container": "main"}, "n1")
    assert found is not None
    assert (found.kind, found.name, found.host) == ("pod", "bert-0", "n1")
    assert dict(found.attributes) == {"container": "main", "namespace": "ml", "pod": "bert-0"}


def test_the_pod_that_serves_what_was_scraped() -> None:
    assert pod_of({"pod": "vllm-0", "namespace": "chat"}) == Pod("chat", "vllm-0")
    assert pod_of({"kubernetes_pod_name": "vllm-0"}) == Pod("", "vllm-0")
    assert pod_of({"instance": "n1:8000"}) is None
