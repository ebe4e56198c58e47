/* Reading the scenario file. A line that means nothing ends the process: a typo must never look like a healthy card. */
#include "standin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const KEYS[K_count] = {
#define AS_NAME(key) [K_##key] = #key,
    NUMBER_KEYS(AS_NAME) TEXT_KEYS(AS_NAME)
};

static const char *reading_path;
static int reading_line;

static void refuse(const char *what, const char *word) {
    fprintf(stderr, "stand-in libnvidia-ml: %s line %d: %s: %s\n", reading_path, reading_line, what, word);
    abort();
}

static void *grown(void *array, int n, int *room, size_t size) {
    if (n < *room) return array;
    *room = *room ? *room * 2 : 4;
    void *more = realloc(array, (size_t)*room * size);
    if (!more) abort();
    return more;
}

static double to_number(const char *word) {
    char *end;
    double value = strtod(word, &end);
    if (end == word || *end) refuse("not a number", word);
    return value;
}

static char *next_word(char **rest) {
    char *word = *rest + strspn(*rest, " \t");
    if (!*word) { *rest = word; return NULL; }
    char *end = word + strcspn(word, " \t");
    *rest = *end ? end + 1 : end;
    *end = 0;
    return word;
}

static struct point *add(struct series *s, int64_t t_ns, int order) {
    s->p = grown(s->p, s->n, &s->room, sizeof *s->p);
    struct point *p = &s->p[s->n++];
    *p = (struct point){.t_ns = t_ns, .order = order};
    return p;
}

static struct series *named_for(struct gpu *g, enum indexed kind, int id, int gi) {
    for (int i = 0; i < g->nnamed; i++)
        if (g->named[i].kind == kind && g->named[i].id == id && g->named[i].gi == gi) return &g->named[i].at;
    g->named = grown(g->named, g->nnamed, &g->room, sizeof *g->named);
    g->named[g->nnamed] = (struct named){.kind = kind, .id = id, .gi = gi};
    return &g->named[g->nnamed++].at;
}

static void numbers(struct point *p, char *rest, int most) {
    for (char *word; (word = next_word(&rest));) {
        if (!strcmp(word, "none")) { p->none = true; return; }
        if (p->count == most) refuse("one value too many", word);
        p->v[p->count++] = strncmp(word, "0x", 2) ? to_number(word) : (double)strtoull(word, NULL, 16);
    }
    if (!p->count) refuse("a value is missing", "");
}

/* compute:1234:1000000000 graphics:77:none mps:99:5:2 (the last is a GPU instance) */
static void processes(struct point *p, char *rest) {
    struct process *list = NULL;
    int room = 0;
    for (char *word; (word = next_word(&rest)) && strcmp(word, "none");) {
        char kind[16], bytes[32];
        unsigned pid, gi = NO_INSTANCE;
        int got = sscanf(word, "%15[^:]:%u:%31[^:]:%u", kind, &pid, bytes, &gi);
        if (got < 3 || (strcmp(kind, "compute") && strcmp(kind, "graphics") && strcmp(kind, "mps")))
            refuse("not compute|graphics|mps:pid:bytes[:gi]", word);
        list = grown(list, p->count, &room, sizeof *list);
        list[p->count++] = (struct process){
            .pid = pid, .gi = gi, .list = kind[0],
            .bytes = strcmp(bytes, "none") ? strtoull(bytes, NULL, 10) : NOT_AVAILABLE,
        };
    }
    p->list = list;
}

/* pid:sm:mem:enc:dec[:jpg:ofa][@age in s], !junk, none (NOT_FOUND), empty (SUCCESS with no rows) */
static void uses(struct point *p, char *rest) {
    struct use *list = NULL;
    int room = 0;
    for (char *word; (word = next_word(&rest));) {
        if (!strcmp(word, "none") || !strcmp(word, "empty")) { p->text = word; continue; }
        if (!strcmp(word, "unsupported")) { p->none = true; continue; }
        struct use one = {0};
        uint32_t *s = one.share;
        if (!strcmp(word, "!junk")) one = (struct use){.junk = true, .pid = 0x7ffffff0, .share = {2147483632u, 9}};
        else if (sscanf(word, "%u:%u:%u:%u:%u:%u:%u", &one.pid, s, s + 1, s + 2, s + 3, s + 4, s + 5) < 5)
            refuse("not pid:sm:mem:enc:dec[:jpg:ofa][@age_s]", word);
        char *age = strchr(word, '@');
        if (age) one.age_s = to_number(age + 1);
        list = grown(list, p->count, &room, sizeof *list);
        list[p->count++] = one;
    }
    p->list = list;
}

static void energy(struct point *p, char *rest) {
    p->text = next_word(&rest);
    if (!p->text) refuse("energy needs", "integrate [base mJ], restart, value <mJ> or none");
    p->none = !strcmp(p->text, "none");
    if (!p->none && strcmp(p->text, "integrate") && strcmp(p->text, "restart") && strcmp(p->text, "value"))
        refuse("energy is none of integrate, restart, value, none", p->text);
    char *word = next_word(&rest);
    if (word) p->v[0] = to_number(word);
    else if (!strcmp(p->text, "value")) refuse("energy value needs", "mJ");
}

/* ret <code>, value <number> [type], or none (as the card has it) */
static void field(struct point *p, char *rest) {
    char *word = next_word(&rest);
    if (!word) refuse("field needs", "ret <code> or value <number> [type]");
    p->text = word;
    p->none = !strcmp(word, "none");
    if (p->none) return;
    if (strcmp(word, "ret") && strcmp(word, "value")) refuse("field is neither ret nor value", word);
    numbers(p, rest, 2);
}

static void instance_line(struct point *p, char *rest) {
    p->text = next_word(&rest);
    if (!p->text) refuse("instance needs", "<gi> <uuid> <memory MiB>, or <gi> none");
    p->none = !strcmp(p->text, "none");
    if (!p->none) numbers(p, rest, 1);
}

static bool indexed(struct gpu *g, char *key, char *rest, int64_t t_ns, int order) {
    static const char *const KINDS[] = {"fail:", "hang:", "slow:", "field:", "reason_ns:"};
    for (int kind = 0; kind < 5; kind++) {
        size_t length = strlen(KINDS[kind]);
        if (strncmp(key, KINDS[kind], length)) continue;
        int id = kind < I_field ? function_id(key + length) : (int)to_number(key + length);
        if (id < 0) refuse("no such function", key + length);
        struct point *p = add(named_for(g, (enum indexed)kind, id, -1), t_ns, order);
        if (kind == I_field) field(p, rest);
        else numbers(p, rest, 1);
        g->scripted |= kind < I_field;
        return true;
    }
    int id, gi = -1;
    if (sscanf(key, "gpm@%d:%d", &gi, &id) == 2 || sscanf(key, "gpm:%d", &id) == 1) {
        numbers(add(named_for(g, I_gpm, id, gi), t_ns, order), rest, 1);
        return true;
    }
    return false;
}

static void value_line(struct gpu *g, char *key, char *rest, int64_t t_ns, int order) {
    if (!strcmp(key, "xid") || !strcmp(key, "event")) {
        struct point *p = add(&g->events, t_ns, order);
        numbers(p, rest, 2);
        if (key[0] == 'x') { p->v[1] = p->v[0]; p->v[0] = 8; }
        return;
    }
    if (!strcmp(key, "instance")) {
        char *gi = next_word(&rest);
        if (!gi) refuse("instance needs", "<gi> <uuid> <memory MiB>");
        struct series *s = named_for(g, I_instance, (int)to_number(gi), -1);
        instance_line(add(s, t_ns, order), rest);
        return;
    }
    if (indexed(g, key, rest, t_ns, order)) return;
    for (int k = 0; k < K_count; k++) {
        if (strcmp(key, KEYS[k])) continue;
        struct point *p = add(&g->key[k], t_ns, order);
        if (k == K_processes) processes(p, rest);
        else if (k == K_process_util) uses(p, rest);
        else if (k == K_energy) energy(p, rest);
        else if (k < K_numbers) numbers(p, rest, 4);
        else {
            p->text = rest + strspn(rest, " \t");
            p->none = !strcmp(p->text, "none");
        }
        return;
    }
    refuse("no such key", key);
}

static bool header(struct scenario *s, const char *word, char *rest) {
    char *value = rest + strspn(rest, " \t");
    if (!strcmp(word, "gpus")) {
        s->gpus = (int)to_number(value);
        if (s->gpus < 0 || s->gpus > MAX_GPUS) refuse("gpus is not 0 to 64", value);
    }
    else if (!strcmp(word, "driver")) snprintf(s->driver, sizeof s->driver, "%s", value);
    else if (!strcmp(word, "nvml")) snprintf(s->nvml, sizeof s->nvml, "%s", value);
    else if (!strcmp(word, "cuda")) s->cuda = (int)to_number(value);
    else if (!strcmp(word, "start")) s->start_ns = (int64_t)llroundl(strtold(value, NULL) * 1000000000.0L);
    else if (!strcmp(word, "global_lock")) s->global_lock = to_number(value) != 0;
    else if (!strcmp(word, "enumerate")) s->enumerate_at_init = !strcmp(value, "init");
    else return false;
    return true;
}

static int earlier(const void *left, const void *right) {
    const struct point *a = left, *b = right;
    if (a->t_ns != b->t_ns) return a->t_ns < b->t_ns ? -1 : 1;
    return a->order - b->order;
}

static void settle(struct series *s) {
    if (!s->n) return;
    qsort(s->p, (size_t)s->n, sizeof *s->p, earlier);
    for (int i = 1; i < s->n; i++) {
        const struct point *p = &s->p[i - 1];
        __int128 rate = p->none ? 0 : (__int128)llround(p->v[0] * 1000);
        s->p[i].before = p->before + rate * (s->p[i].t_ns - p->t_ns);
    }
}

static int by_kind(const void *left, const void *right) {
    return (int)((const struct named *)left)->kind - (int)((const struct named *)right)->kind;
}

/* One kind side by side, and MIG slots in the order of their first line. */
static void settle_gpu(struct gpu *g) {
    for (int k = 0; k < K_count; k++) settle(&g->key[k]);
    settle(&g->events);
    for (int i = 1; i < g->nnamed; i++) /* stable, and short */
        for (int j = i; j && by_kind(&g->named[j - 1], &g->named[j]) > 0; j--) {
            struct named other = g->named[j];
            g->named[j] = g->named[j - 1];
            g->named[j - 1] = other;
        }
    for (int i = g->nnamed - 1; i >= 0; i--) {
        settle(&g->named[i].at);
        g->first_of[g->named[i].kind] = i;
        g->count_of[g->named[i].kind]++;
    }
    if (g->count_of[I_instance] > MAX_INSTANCES) refuse("more than 16 instances on", "one GPU");
}

static char *keep(struct scenario *s, const char *text) {
    s->owned = grown(s->owned, s->nowned, &s->room, sizeof *s->owned);
    return s->owned[s->nowned++] = strdup(text);
}

static void line(struct scenario *s, char *text) {
    char *rest = text, *word = next_word(&rest);
    if (!word || *word == '#') return;
    if (header(s, word, rest)) return;
    double t_s = to_number(word);
    char *whose = next_word(&rest), *key = next_word(&rest);
    if (!key) refuse("not <t> <gpu|*> <key> <value>", text);
    int64_t t_ns = llround(t_s * 1e9);
    int first = 0, last = s->gpus - 1;
    bool every = !strcmp(whose, "*");
    if (!every) {
        first = last = (int)to_number(whose);
        if (first < 0 || first >= s->gpus) refuse("no such GPU (is `gpus` above this line?)", whose);
    }
    for (int i = first; i <= last; i++) value_line(&s->gpu[i], key, keep(s, rest), t_ns, s->order);
    if (every && (!strncmp(key, "fail:", 5) || !strncmp(key, "hang:", 5) || !strncmp(key, "slow:", 5)))
        value_line(&s->gpu[EVERYTHING], key, keep(s, rest), t_ns, s->order);
    s->order++;
}

struct scenario *scenario_load(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    reading_path = path;
    struct scenario *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->gpus = 1;
    s->cuda = 12080;
    s->start_ns = INT64_MIN;
    strcpy(s->driver, "570.148.08");
    char *text = NULL;
    size_t room = 0;
    for (reading_line = 1; getline(&text, &room, file) >= 0; reading_line++) {
        text[strcspn(text, "\r\n")] = 0;
        line(s, text);
    }
    free(text);
    fclose(file);
    for (int i = 0; i <= MAX_GPUS; i++) settle_gpu(&s->gpu[i]);
    if (!*s->nvml) snprintf(s->nvml, sizeof s->nvml, "12.%.76s", s->driver);
    return s;
}

static void drop(struct series *s) {
    for (int i = 0; i < s->n; i++) free(s->p[i].list);
    free(s->p);
}

void scenario_free(struct scenario *s) {
    for (int i = 0; i <= MAX_GPUS; i++) {
        struct gpu *g = &s->gpu[i];
        for (int k = 0; k < K_count; k++) drop(&g->key[k]);
        for (int n = 0; n < g->nnamed; n++) drop(&g->named[n].at);
        drop(&g->events);
        free(g->named);
    }
    for (int i = 0; i < s->nowned; i++) free(s->owned[i]);
    free(s->owned);
    free(s);
}
