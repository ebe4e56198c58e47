"""Who runs what on the simulated fleet: four hosts of eight GPUs, each row one case worth seeing.

Times hang on an *anchor*: the hour in which the fleet was first seeded. What happened "some days ago" stays where
it was when the demo is opened again later.
"""

from dataclasses import dataclass
from typing import Final

from agent.sources.simulator.cards import A100, H100, H200, L40S, Card
from agent.sources.simulator.decode import Decoder
from agent.sources.simulator.program import InTurn, Job, Nights, Office, Program, Since, WorkWeek
from agent.sources.simulator.serving import Server, Traffic
from agent.sources.simulator.work import Batch, ByDay, InputBound, Overheating, Stuck, Training
from catalog.llm_models import kv_bytes_per_token, resolve
from core.units import DAY_MS, GIB, HOUR_MS

HISTORY_DAYS: Final = 30
EMPTY_SINCE_DAYS: Final = 11
"""The node that nobody uses any more has been empty for that long."""
HANDED_ON_H: Final = 372
"""Hours before the anchor (fifteen and a half days) at which an idle notebook's GPU was given to the queue as well: long
enough ago that before and after can be compared."""
STUCK_SINCE_H: Final = 31
SILENT_H: Final = (149, 144)
"""Hours before the anchor between which the agent of ``lab-01`` was down."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One GPU of the fleet: where it is, what card it is, what runs there."""

    host: str
    index: int
    card: Card
    program: Program


@dataclass(frozen=True, slots=True)
class ServerSeat:
    """One LLM engine: its address and the GPUs (indices on its host) it runs on."""

    engine: str
    host: str
    server: Server
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Silence:
    """The agent of a host does not report from one instant to another."""

    host: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Cast:
    """The whole fleet."""

    seats: tuple[Seat, ...]
    servers: tuple[ServerSeat, ...]
    silences: tuple[Silence, ...]


def cast(anchor_ms: int) -> Cast:
    """The fleet whose history ends at ``anchor_ms`` and goes on from there."""
    chat = _chat_servers(anchor_ms)
    parked = _parked_server(anchor_ms)
    seats = (
        *(Seat(one.host, index, H100, one.server) for one in chat for index in one.indices),
        *(Seat("train-01", index, H200, _pretraining(index)) for index in range(8)),
        *_lab(anchor_ms, parked.server),
        *(Seat("batch-01", index, A100, _scoring(anchor_ms, index)) for index in range(8)),
    )
    down, up = (anchor_ms - hours * HOUR_MS for hours in SILENT_H)
    return Cast(seats=seats, servers=(*chat, parked), silences=(Silence("lab-01", down, up),))


def _decoder(model: str, card: Card, gpus: int, *, prompt: float, generated: float) -> Decoder:
    """The model's facts on ``gpus`` cards with one mean request; 16-bit weights and cache."""
    facts = resolve(model)
    if facts is None:
        raise ValueError(f"the catalogue has no model {model}: the demo fleet needs it")
    return Decoder(
        weight_bytes=2.0 * facts.parameters,
        kv_bytes_per_token=kv_bytes_per_token(facts),
        active_parameters=facts.active_parameters,
        layers=facts.layers,
        tensor_parallel=gpus,
        bandwidth_bytes_per_s=card.bandwidth_bytes_per_s,
        flop_per_s=card.flop_per_s,
        prompt_tokens=prompt,
        generated_tokens=generated,
    )


def _chat_servers(anchor_ms: int) -> tuple[ServerSeat, ...]:
    start = anchor_ms - 41 * DAY_MS
    small = Server(  # more clients than its batch limit lets in: the flag is the bottleneck
        model="meta-llama/Llama-2-13b-chat-hf",
        user="svc-search",
        pid=21_408,
        start_ms=start,
        decoder=_decoder("meta-llama/Llama-2-13b-chat-hf", H100, 1, prompt=250, generated=260),
        max_num_seqs=8,
        gpu_memory_bytes=H100.memory_total_bytes,
        in_flight=Traffic(peak_requests=46, floor_requests=17, seed=101),
    )
    full = Server(  # always more than it can take, with a wide batch: nothing to gain but by buying
        model="meta-llama/Llama-3.1-8B-Instruct",
        user="svc-support",
        pid=21_977,
        start_ms=start + 2 * DAY_MS,
        decoder=_decoder("meta-llama/Llama-3.1-8B-Instruct", H100, 1, prompt=400, generated=400),
        max_num_seqs=256,
        gpu_memory_bytes=H100.memory_total_bytes,
        in_flight=Traffic(peak_requests=430, floor_requests=300, seed=102),
        cached_ratio=0.18,
    )
    replicas = tuple(
        Server(  # few requests by day, none by night and on weekends: demand is the limit
            model="Qwen/Qwen3-14B",
            user="svc-assist",
            pid=30_112 + 58 * number,
            start_ms=start + 9 * DAY_MS,
            decoder=_decoder("Qwen/Qwen3-14B", H100, 1, prompt=600, generated=300),
            max_num_seqs=256,
            gpu_memory_bytes=H100.memory_total_bytes,
            in_flight=Traffic(peak_requests=13, quiet_ratio=0.2, seed=103 + number),
        )
        for number in range(2)
    )
    large = Server(  # one model over four GPUs, busy by day
        model="meta-llama/Llama-3.3-70B-Instruct",
        user="svc-assist",
        pid=8_840,
        start_ms=start,
        decoder=_decoder("meta-llama/Llama-3.3-70B-Instruct", H100, 4, prompt=500, generated=350),
        max_num_seqs=256,
        gpu_memory_bytes=H100.memory_total_bytes,
        in_flight=Traffic(peak_requests=105, floor_requests=9, seed=106),
        cached_ratio=0.3,
    )
    return (
        ServerSeat("chat-01:8000/0", "chat-01", small, (0,)),
        ServerSeat("chat-01:8001/0", "chat-01", full, (1,)),
        ServerSeat("chat-01:8002/0", "chat-01", replicas[0], (2,)),
        ServerSeat("chat-01:8003/0", "chat-01", replicas[1], (3,)),
        ServerSeat("chat-01:8004/0", "chat-01", large, (4, 5, 6, 7)),
    )


def _parked_server(anchor_ms: int) -> ServerSeat:
    server = Server(  # started for a demonstration three weeks ago; nobody has asked since
        model="mistralai/Mistral-7B-Instruct-v0.3",
        user="ines",
        pid=17_230,
        start_ms=anchor_ms - 41 * DAY_MS,
        decoder=_decoder("mistralai/Mistral-7B-Instruct-v0.3", L40S, 1, prompt=300, generated=300),
        max_num_seqs=256,
        gpu_memory_bytes=L40S.memory_total_bytes,
        in_flight=_nobody,
    )
    return ServerSeat("lab-01:8000/0", "lab-01", server, (0,))


def _nobody(_ts_ms: int) -> float:
    return 0.0


def _pretraining(index: int) -> Program:
    work = Training(H200, memory_used_bytes=118.0 * GIB, mfu_ratio=0.41, seed=200 + index)
    return Job("torchrun pretrain.py", "mara", 41_020 + index, WorkWeek(), work)


def _lab(anchor_ms: int, parked: Server) -> tuple[Seat, ...]:
    long = Since(anchor_ms - 41 * DAY_MS)
    stuck_ms = anchor_ms - STUCK_SINCE_H * HOUR_MS
    finetuning = [_finetuning(stuck_ms, rank) for rank in range(2)]
    hot = Overheating(
        Batch(L40S, 22.0 * GIB, 0.94, 0.36, 0.4, 320), anchor_ms - 52 * HOUR_MS, anchor_ms - 43 * HOUR_MS
    )
    speech = ByDay(Batch(L40S, 9.0 * GIB, 0.3, 0.06, 0.12, 330), 6.0, 22.0)
    programs: tuple[Program, ...] = (
        parked,
        _notebook(anchor_ms),
        *(
            Job("python train_unet.py", "lena", 9_144 + n, long, InputBound(L40S, 27.0 * GIB, 340 + n))
            for n in range(2)
        ),
        *finetuning,
        Job("python render_previews.py", "svc-media", 6_020, long, hot),
        Job("whisper-worker", "svc-speech", 7_301, long, speech),
    )
    return tuple(Seat("lab-01", index, L40S, program) for index, program in enumerate(programs))


def _notebook(anchor_ms: int) -> Program:
    """Held day and night for two hours of work, until it was started on demand and the queue got the rest."""
    handed_on_ms = anchor_ms - HANDED_ON_H * HOUR_MS
    work = Batch(L40S, 17.0 * GIB, 0.7, 0.2, 0.3, 301)
    held = Since(anchor_ms - 41 * DAY_MS, handed_on_ms)
    queued = Batch(L40S, 21.0 * GIB, 0.88, 0.31, 0.42, 302)
    return InTurn(
        (
            Job("jupyter-kernel", "tomas", 5_512, held, ByDay(work, 10.0, 12.0)),
            Job("jupyter-kernel", "tomas", 5_512, Office(10.0, 12.0), work),
            Job("python embed_archive.py", "svc-batch", 19_330, Since(handed_on_ms), queued),
        )
    )


def _finetuning(stuck_ms: int, rank: int) -> Program:
    started_ms = stuck_ms - 5 * HOUR_MS
    work = Training(L40S, 31.0 * GIB, 0.36, 310 + rank)
    name, user, pid = "torchrun finetune.py", "amir", 12_660 + rank
    return InTurn(
        (
            Job(name, user, pid, Since(started_ms), Stuck(work, stuck_ms)),
            Job(name, user, pid, Office(9.0, 21.0, until_ms=started_ms), work),
        )
    )


def _scoring(anchor_ms: int, index: int) -> Program:
    work = Batch(A100, 61.0 * GIB, 0.95, 0.33, 0.45, 400 + index)
    until = anchor_ms // DAY_MS * DAY_MS - EMPTY_SINCE_DAYS * DAY_MS
    return Job("python score_documents.py", "svc-batch", 15_800 + index, Nights(18, 6, until), work)
