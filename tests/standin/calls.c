/* How a call enters: the scenario of the moment, the clock, the counts, the driver lock, and what is scripted to go wrong. */
#define _GNU_SOURCE
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_NS 20000000
#define KEPT 8 /* scenarios that other threads may still be reading; a call takes far less than 8 x 20 ms */

static const char *const NAMES[] = {
#define AS_TEXT(name) #name,
    FUNCTIONS(AS_TEXT)
};

static struct scenario *current, *kept[KEPT];
static int nkept;
static struct stat seen;
static int64_t looked_ns, first_init_wall_ns = INT64_MIN, start_mono_ns, start_wall_ns;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER, driver = PTHREAD_MUTEX_INITIALIZER;
static uint32_t counts[F_count][MAX_GPUS + 1];
static int inits;
static struct device *handles; /* of this init: those of an earlier one are no handles any more */
static int enumerated[MAX_GPUS], nenumerated;

const char *function_name(int fn) { return NAMES[fn]; }

int function_id(const char *name) {
    if (!strcmp(name, "*")) return F_every;
    for (int i = 0; i < F_count; i++)
        if (!strcmp(NAMES[i], name)) return i;
    return -1;
}

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t wall_ns(void) { return clock_ns(CLOCK_REALTIME); }
int64_t wall_of(int64_t t_ns) { return start_wall_ns + t_ns; }

/* The scenario's clock is monotonic: t=0 is placed once, and a step of the wall clock does not move it. */
static void place_start(const struct scenario *s, int64_t now_ns) {
    int64_t wall = wall_ns();
    if (first_init_wall_ns == INT64_MIN) first_init_wall_ns = wall;
    start_wall_ns = s->start_ns == INT64_MIN ? first_init_wall_ns : s->start_ns;
    start_mono_ns = now_ns - (wall - start_wall_ns);
}

static void look(int64_t now_ns) {
    const char *path = getenv("GPUWISE_STANDIN");
    struct stat found;
    if (!path || stat(path, &found)) {
        if (current) return; /* being replaced, or taken away: the last one stays in force */
        fprintf(stderr, "stand-in libnvidia-ml: GPUWISE_STANDIN names no scenario file: %s\n", path ? path : "(unset)");
        abort();
    }
    if (current && found.st_ino == seen.st_ino && found.st_size == seen.st_size
        && found.st_mtim.tv_sec == seen.st_mtim.tv_sec && found.st_mtim.tv_nsec == seen.st_mtim.tv_nsec) return;
    struct scenario *next = scenario_load(path);
    if (!next) return;
    bool moved = !current || current->start_ns != next->start_ns;
    seen = found;
    if (moved) place_start(next, now_ns);
    struct scenario *oldest = kept[nkept % KEPT];
    kept[nkept++ % KEPT] = next;
    __atomic_store_n(&current, next, __ATOMIC_RELEASE);
    if (oldest) scenario_free(oldest);
}

struct scenario *tick(int64_t *t_ns) {
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    bool first = !__atomic_load_n(&current, __ATOMIC_ACQUIRE);
    if (first || now - __atomic_load_n(&looked_ns, __ATOMIC_RELAXED) >= LOOK_EVERY_NS) {
        if (first ? !pthread_mutex_lock(&loading) : !pthread_mutex_trylock(&loading)) {
            look(now);
            __atomic_store_n(&looked_ns, now, __ATOMIC_RELAXED);
            pthread_mutex_unlock(&loading);
        }
    }
    *t_ns = now > start_mono_ns ? now - start_mono_ns : 0;
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

bool is_present(const struct scenario *s, int gpu, int64_t t_ns) {
    const struct point *p = gpu < s->gpus ? at(&s->gpu[gpu].key[K_present], t_ns) : NULL;
    return gpu < s->gpus && (!p || p->v[0] != 0);
}

static void refresh(struct call *c) {
    c->s = tick(&c->t_ns);
    c->g = &c->s->gpu[c->index];
}

static double scripted(const struct call *c, enum indexed kind, int fn) {
    const struct series *own = named_at(c->g, kind, fn, -1);
    const struct point *p = own ? at(own, c->t_ns) : NULL;
    if (p && p->v[0] != 0) return p->v[0];
    /* a wildcard leaves alone what has no way to say that it failed */
    if (kind != I_hang && (fn == F_nvmlShutdown || fn == F_nvmlErrorString)) return 0;
    const struct series *every = named_at(c->g, kind, F_every, -1);
    p = every ? at(every, c->t_ns) : NULL;
    return p ? p->v[0] : 0;
}

static void nap(int64_t ns) {
    struct timespec span = {ns / 1000000000, ns % 1000000000};
    nanosleep(&span, NULL);
}

int fault(struct call *c, int fn) {
    if (!c->g->scripted) return OK;
    while (scripted(c, I_hang, fn) != 0) {
        nap(10000000);
        refresh(c);
    }
    double slow_ms = scripted(c, I_slow, fn);
    if (slow_ms > 0) {
        nap((int64_t)(slow_ms * 1e6));
        refresh(c);
    }
    return (int)scripted(c, I_fail, fn);
}

static int begin(struct call *c, int fn) {
    c->s = tick(&c->t_ns);
    c->g = &c->s->gpu[c->index];
    __atomic_fetch_add(&counts[fn][c->index], 1, __ATOMIC_RELAXED);
    if (c->s->global_lock) {
        pthread_mutex_lock(&driver);
        c->locked = true;
        refresh(c);
    }
    return fault(c, fn);
}

void leave(struct call *c) {
    if (c->locked) pthread_mutex_unlock(&driver);
    c->locked = false;
}

int enter_for(struct call *c, int fn, int gpu) {
    c->index = gpu;
    int failed = begin(c, fn);
    if (failed) return failed;
    return inits ? OK : UNINITIALIZED;
}

int enter(struct call *c, int fn, Handle h, enum accepts accepts) {
    const struct device *last = handles + MAX_GPUS * (MAX_INSTANCES + 1);
    bool known = handles && h >= handles && h < last;
    c->device = h;
    c->index = known ? h->index : EVERYTHING;
    int failed = begin(c, fn);
    if (failed) return failed;
    if (!inits) return UNINITIALIZED;
    if (!known) return INVALID_ARGUMENT;
    if (!is_present(c->s, h->index, c->t_ns)) return GPU_IS_LOST;
    if (h->instance >= 0 && !instance(c, h->instance, NULL)) return INVALID_ARGUMENT;
    if (accepts == ANY) return OK;
    if (accepts == INSTANCE_ONLY) return h->instance >= 0 ? OK : INVALID_ARGUMENT;
    if (h->instance >= 0) return NOT_SUPPORTED;
    return accepts == WITHOUT_MIG && number_or(c, K_mig, 0) == 1 ? NOT_SUPPORTED : OK;
}

Handle handle_of(int gpu, int slot) { return &handles[gpu * (MAX_INSTANCES + 1) + slot + 1]; }

/* GPUs that left make room, unless the scenario says `enumerate init`: then places stay till the next init. */
int position_of(const struct call *c, unsigned position) {
    if (c->s->enumerate_at_init) {
        if (position >= (unsigned)nenumerated) return -1;
        return is_present(c->s, enumerated[position], c->t_ns) ? enumerated[position] : -1;
    }
    for (int i = 0; i < c->s->gpus; i++)
        if (is_present(c->s, i, c->t_ns) && position-- == 0) return i;
    return -1;
}

int present_count(const struct call *c) {
    if (c->s->enumerate_at_init) return nenumerated;
    int n = 0;
    for (int i = 0; i < c->s->gpus; i++) n += is_present(c->s, i, c->t_ns);
    return n;
}

int copy_text(char *to, unsigned room, const char *text) {
    if (!text) return NOT_SUPPORTED;
    if (!to) return INVALID_ARGUMENT;
    if (strlen(text) + 1 > room) return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return OK;
}

static int initialise(int fn) {
    struct call c __attribute__((cleanup(leave))) = {.index = EVERYTHING};
    int failed = begin(&c, fn);
    /* pynvml only knows nvmlInitWithFlags; a scenario may name either */
    if (!failed && fn != F_nvmlInit_v2) failed = fault(&c, F_nvmlInit_v2);
    if (failed) return failed;
    pthread_mutex_lock(&loading);
    if (!inits++) {
        int n = MAX_GPUS * (MAX_INSTANCES + 1);
        handles = calloc((size_t)n, sizeof *handles); /* the former ones stay allocated: a stale handle must not become true */
        for (int i = 0; i < n; i++)
            handles[i] = (struct device){i / (MAX_INSTANCES + 1), i % (MAX_INSTANCES + 1) - 1};
        nenumerated = 0;
        for (int i = 0; i < c.s->gpus; i++)
            if (is_present(c.s, i, c.t_ns)) enumerated[nenumerated++] = i;
    }
    pthread_mutex_unlock(&loading);
    return OK;
}

API int nvmlInit_v2(void) { return initialise(F_nvmlInit_v2); }

API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return initialise(F_nvmlInitWithFlags);
}

/* `<function> <gpu|-> <count>` lines into the file that GPUWISE_STANDIN_CALLS names; %p in it becomes the process id. */
API void standin_dump(void) {
    const char *path = getenv("GPUWISE_STANDIN_CALLS");
    if (!path) return;
    char whole[4096], part[4200];
    const char *pid = strstr(path, "%p");
    if (pid) snprintf(whole, sizeof whole, "%.*s%d%s", (int)(pid - path), path, getpid(), pid + 2);
    else snprintf(whole, sizeof whole, "%s", path);
    snprintf(part, sizeof part, "%s.part%d", whole, getpid());
    FILE *file = fopen(part, "we");
    if (!file) return;
    for (int fn = 0; fn < F_count; fn++)
        for (int gpu = 0; gpu <= MAX_GPUS; gpu++) {
            if (!counts[fn][gpu]) continue;
            if (gpu == EVERYTHING) fprintf(file, "%s - %u\n", NAMES[fn], counts[fn][gpu]);
            else fprintf(file, "%s %d %u\n", NAMES[fn], gpu, counts[fn][gpu]);
        }
    fclose(file);
    rename(part, whole);
}

API int nvmlShutdown(void) {
    OPEN_SYSTEM(nvmlShutdown)
    pthread_mutex_lock(&loading);
    inits--;
    pthread_mutex_unlock(&loading);
    standin_dump();
    return OK;
}

API const char *nvmlErrorString(int code) {
    static const struct { int code; const char *text; } TEXTS[] = {
        {0, "Success"}, {1, "Uninitialized"}, {2, "Invalid Argument"}, {3, "Not Supported"},
        {4, "Insufficient Permissions"}, {6, "Not Found"}, {7, "Insufficient Size"}, {9, "Driver Not Loaded"},
        {10, "Timeout"}, {13, "Function Not Found"}, {15, "GPU is lost"}, {16, "GPU requires reset"},
        {18, "Driver/library version mismatch"}, {20, "Insufficient Memory"}, {999, "Unknown Error"},
    };
    for (unsigned i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        if (TEXTS[i].code == code) return TEXTS[i].text;
    return "Unknown Error";
}

API int nvmlSystemGetDriverVersion(char *to, unsigned room) {
    OPEN_SYSTEM(nvmlSystemGetDriverVersion)
    return copy_text(to, room, c.s->driver);
}

API int nvmlSystemGetNVMLVersion(char *to, unsigned room) {
    OPEN_SYSTEM(nvmlSystemGetNVMLVersion)
    return copy_text(to, room, c.s->nvml);
}

API int nvmlSystemGetCudaDriverVersion(int *version) {
    OPEN_SYSTEM(nvmlSystemGetCudaDriverVersion)
    return version ? (*version = c.s->cuda, OK) : INVALID_ARGUMENT;
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    OPEN_SYSTEM(nvmlSystemGetCudaDriverVersion_v2)
    return version ? (*version = c.s->cuda, OK) : INVALID_ARGUMENT;
}
