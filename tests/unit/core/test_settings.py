from pathlib import Path

import pytest

from core.errors import SettingsError
from core.settings import Secret, Settings, load


@pytest.fixture(autouse=True)
def no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("core.settings.ETC", tmp_path / "absent.toml")
    return tmp_path


def test_flag_beats_environment_beats_file(no_files: Path) -> None:
    file = no_files / "gpuwise.toml"
    file.write_text('port = 1\npue = 1.1\nhost = "a"\n')
    env = {"GPUWISE_CONFIG": str(file), "GPUWISE_PORT": "2", "GPUWISE_HOST": "b"}
    settings = load({"port": 3}, env)
    assert (settings.port, settings.host, settings.pue) == (3, "b", 1.1)


def test_a_flag_not_given_does_not_hide_the_environment(no_files: Path) -> None:
    assert load({"port": None}, {"GPUWISE_PORT": "9000", "XDG_CONFIG_HOME": str(no_files)}).port == 9000


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"GPUWISE_PORT": "many"}, "GPUWISE_PORT: setting port is 'many'"),
        ({"GPUWISE_PUE": "0.5"}, "setting pue is 0.5"),
        ({"GPUWISE_BILLING": "free"}, "use on_demand, reserved or owned"),
        ({"GPUWISE_DATABASE_URL": "mysql://x"}, "sqlite:///PATH or postgresql://"),
        ({"GPUWISE_SMTP_STARTTLS": "maybe"}, "use true or false"),
        ({"GPUWISE_INTERVAL_S": "0.01"}, "setting interval_s is 0.01"),
        ({"GPUWISE_SAMPLE_S": "7"}, "a whole number of samples"),
        ({"GPUWISE_SAMPLE_S": "5", "GPUWISE_INTERVAL_S": "10"}, "at least one interval_s (10.0)"),
        ({"GPUWISE_SINK": "kafka"}, "setting sink is 'kafka': use database or server"),
        ({"GPUWISE_SINK": "server"}, "setting server_url is not given"),
        ({"GPUWISE_SERVER_URL": "gpuwise.example.org"}, "setting server_url is 'gpuwise.example.org'"),
        ({"GPUWISE_SERVER_URL": "https://h?token=x"}, "setting server_url has a query"),
        ({"GPUWISE_SERVER_URL": "https://h:99999"}, "the port must be a number from 1 to 65535"),
        ({"GPUWISE_SPOOL_MAX_MB": "0"}, "setting spool_max_mb is 0"),
        ({"GPUWISE_SPOOL_PATH": ""}, "setting spool_path is empty"),
        ({"GPUWISE_AGENT_METRICS_PORT": "any"}, "setting agent_metrics_port is 'any'"),
        ({"GPUWISE_ENGINE_URLS": "http://a/metrics,b"}, "setting engine_urls is 'b'"),
        ({"GPUWISE_DCGM_URL": "yes"}, "setting dcgm_url is 'yes'"),
    ],
)
def test_a_bad_value_names_its_key_and_what_to_do(env: dict[str, str], says: str, no_files: Path) -> None:
    with pytest.raises(SettingsError) as error:
        load({}, env | {"XDG_CONFIG_HOME": str(no_files)})
    assert says in str(error.value)


def test_an_unknown_key_in_a_file_is_refused(no_files: Path) -> None:
    file = no_files / "x.toml"
    file.write_text("prot = 80\n")
    with pytest.raises(SettingsError, match="unknown setting 'prot'"):
        load({}, {"GPUWISE_CONFIG": str(file)})


def test_a_broken_file_is_named_with_its_fault(no_files: Path) -> None:
    file = no_files / "x.toml"
    file.write_text("port = = 1\n")
    with pytest.raises(SettingsError, match=r"x\.toml is not valid TOML"):
        load({}, {"GPUWISE_CONFIG": str(file)})


def test_a_password_does_not_print_itself() -> None:
    assert "hunter2" not in repr(Settings(smtp_password=Secret("hunter2")))


def test_recipients_come_from_a_list_or_commas(no_files: Path) -> None:
    env = {"GPUWISE_REPORT_RECIPIENTS": "a@x.org, b@x.org", "XDG_CONFIG_HOME": str(no_files)}
    assert load({}, env).report_recipients == ("a@x.org", "b@x.org")


def test_an_energy_price_not_given_is_unknown_not_free() -> None:
    assert Settings().tariff_usd_per_kwh is None


def test_an_address_with_a_password_is_refused_without_printing_it(no_files: Path) -> None:
    env = {"GPUWISE_SERVER_URL": "https://me:hunter2@h", "XDG_CONFIG_HOME": str(no_files)}
    with pytest.raises(SettingsError, match="server_url has a user or password") as error:
        load({}, env)
    assert "hunter2" not in str(error.value)


def test_the_agent_is_set_up_for_a_server_by_the_environment(no_files: Path) -> None:
    env = {
        "GPUWISE_SINK": "server",
        "GPUWISE_SERVER_URL": "https://[::1]:8787/gpuwise",
        "GPUWISE_SERVER_TOKEN": "hunter2",
        "GPUWISE_AGENT_METRICS_PORT": "9400",
        "GPUWISE_ENGINE_URLS": "http://127.0.0.1:8000/metrics, http://127.0.0.1:8001/metrics",
        "GPUWISE_DCGM_URL": "",
        "XDG_CONFIG_HOME": str(no_files),
    }
    settings = load({}, env)
    assert (settings.sink, settings.server_url) == ("server", "https://[::1]:8787/gpuwise")
    assert (settings.agent_metrics_port, len(settings.engine_urls), settings.dcgm_url) == (9400, 2, "")
    assert "hunter2" not in repr(settings)
