/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/explore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/commute.h"
#include "sim/random.h"
#include "sim/visited.h"

#define DEFAULT_MEMORY_OCTETS (SIZE_MAX / 2)
#define LOOK_EVERY_COMMUTING 16u /* every state takes thousands of steps then */
#define LOOK_EVERY 4096u         /* transitions between two looks at the clock */
#define PROGRESS_SECONDS 0.5

/* A state on the path from the initial one, and the steps out of it. */
struct frame {
    size_t mark;    /* undo to here to leave the state */
    uint64_t steps; /* its first step on the stack of steps */
    uint32_t count; /* its steps */
    uint32_t next;  /* the one to try next */
    bool effect;    /* a step changed more than what was read */
};

struct path {
    struct frame *frames;
    struct sim_step *steps;
    uint32_t depth, frames_size;
    uint64_t steps_used, steps_size;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t memory_in_use(const struct sim_search *search)
{
    return sim_visited_octets(search->visited) + search->path_octets + search->w->arena.undo_size;
}

static void tell_progress(struct sim_search *search, double now)
{
    if (!search->options->progress || now < search->next_progress)
        return;
    search->next_progress = now + PROGRESS_SECONDS;
    struct sim_progress progress = {
        .states = sim_visited_count(search->visited),
        .transitions = search->report->transitions,
        .runs = search->report->runs,
        .depth = search->depth,
        .depth_max = search->report->depth_max,
        .memory_octets = memory_in_use(search),
        .seconds = now - search->started,
    };
    search->options->progress(search->options->progress_context, &progress);
}

static bool bound_reached(struct sim_search *search, enum sim_bound bound)
{
    search->report->result = SIM_INCOMPLETE;
    search->report->bound = bound;
    return false;
}

bool sim_search_goes_on(struct sim_search *search)
{
    const struct sim_explore *options = search->options;
    struct sim_report *report = search->report;
    if (options->max_states != 0 && sim_visited_count(search->visited) > options->max_states)
        return bound_reached(search, SIM_BOUND_STATES);
    if (options->stop && *options->stop)
        return bound_reached(search, SIM_BOUND_STOP);
    if (report->transitions < search->next_look)
        return true;
    search->next_look =
        report->transitions + (options->check_commute ? LOOK_EVERY_COMMUTING : LOOK_EVERY);
    size_t memory = memory_in_use(search);
    if (memory > report->memory_octets)
        report->memory_octets = memory;
    if (options->max_memory_octets != 0 && memory > options->max_memory_octets)
        return bound_reached(search, SIM_BOUND_MEMORY);
    double now = now_s();
    if (options->max_seconds > 0 && now - search->started > options->max_seconds)
        return bound_reached(search, SIM_BOUND_SECONDS);
    tell_progress(search, now);
    return true;
}

void sim_search_full(struct sim_search *search, int failed)
{
    if (failed == -ENOSPC)
        bound_reached(search, SIM_BOUND_MEMORY);
    else
        search->report->result = SIM_NO_MEMORY;
}

void sim_search_violation(struct sim_search *search)
{
    search->report->result = SIM_VIOLATION;
    search->report->violation = search->w->violation;
}

static bool is_reached(const struct sim_world *w, const char *name)
{
    for (uint32_t i = 0; i < w->reach_count; i++)
        if (strcmp(w->reach_names[i], name) == 0)
            return w->reached[i] != 0;
    return false;
}

bool sim_all_reached(const struct sim_world *w)
{
    for (unsigned i = 0; i < w->scenario->must_reach_count; i++)
        if (!is_reached(w, w->scenario->must_reach[i]))
            return false;
    return true;
}

/* ---- exhaustive -------------------------------------------------------------------------- */

static bool path_push(struct sim_search *search, struct path *path, size_t mark)
{
    if (path->depth == path->frames_size) {
        uint32_t size = path->frames_size ? path->frames_size * 2 : 1024;
        struct frame *frames = realloc(path->frames, size * sizeof *frames);
        if (!frames)
            return false;
        path->frames = frames;
        path->frames_size = size;
    }
    if (path->steps_used + SIM_MAX_STEPS > path->steps_size) {
        uint64_t size = path->steps_size ? path->steps_size * 2 : 16 * SIM_MAX_STEPS;
        struct sim_step *steps = realloc(path->steps, size * sizeof *steps);
        if (!steps)
            return false;
        path->steps = steps;
        path->steps_size = size;
    }
    search->path_octets =
        path->frames_size * sizeof *path->frames + path->steps_size * sizeof *path->steps;
    uint32_t count = sim_world_enabled(search->w, path->steps + path->steps_used);
    path->frames[path->depth++] =
        (struct frame){.mark = mark, .steps = path->steps_used, .count = count};
    path->steps_used += count;
    search->depth = path->depth - 1;
    if (search->depth > search->report->depth_max)
        search->report->depth_max = search->depth;
    return true;
}

/* The steps that were taken to where the search is, and `extra` more of the last state. */
static int path_trace(const struct path *path, struct sim_report *report)
{
    struct sim_step *trace = calloc(path->depth + 1u, sizeof *trace);
    if (!trace)
        return -ENOMEM;
    uint32_t count = 0;
    for (uint32_t i = 0; i < path->depth; i++) {
        const struct frame *frame = &path->frames[i];
        if (frame->next != 0)
            trace[count++] = path->steps[frame->steps + frame->next - 1];
    }
    report->trace = trace;
    report->trace_steps = count;
    if (count > report->depth_max) /* the last step led to no state that counts */
        report->depth_max = count;
    return 0;
}

static void count_quiescent(struct sim_report *report, uint64_t hash)
{
    report->quiescent++;
    report->quiescent_digest += sim_mix64(hash);
}

/* All steps of the last state were tried. False on a violation. */
static bool leave_state(struct sim_search *search, struct path *path)
{
    struct sim_world *w = search->w;
    struct frame *frame = &path->frames[path->depth - 1];
    if (!frame->effect && sim_world_quiescent(w)) {
        count_quiescent(search->report, w->arena.hash);
        sim_world_judge_quiescent(w);
    } else if (frame->count == 0) {
        sim_violate(w, "stuck", "no step is possible, but not every agent is at rest");
    }
    if (w->violation.property) {
        frame->next = 0; /* the trace ends in this state */
        return false;
    }
    sim_arena_undo(&w->arena, frame->mark);
    path->steps_used = frame->steps;
    path->depth--;
    return true;
}

/* A state is entered: counts it if it is new and makes it the last of the path. */
static int enter_state(struct sim_search *search, struct path *path, size_t mark)
{
    struct sim_world *w = search->w;
    int added = sim_visited_add(search->visited, &w->arena);
    if (added < 0) {
        sim_search_full(search, added);
        return added;
    }
    if (added == 0) {
        sim_arena_undo(&w->arena, mark);
        return 0;
    }
    search->report->digest += sim_mix64(w->arena.hash);
    if (!path_push(search, path, mark)) {
        search->report->result = SIM_NO_MEMORY;
        return -ENOMEM;
    }
    if (search->options->check_commute && !sim_commute_check(w, &search->report->commuted)) {
        sim_search_violation(search);
        return -EINVAL;
    }
    return 0;
}

static int try_step(struct sim_search *search, struct path *path)
{
    struct sim_world *w = search->w;
    struct frame *frame = &path->frames[path->depth - 1];
    const struct sim_step *step = &path->steps[frame->steps + frame->next++];
    size_t mark = sim_arena_mark(&w->arena);
    uint64_t before = w->arena.hash;
    bool well = sim_world_step(w, step);
    search->report->transitions++;
    if (w->effect && !sim_step_is_environment(step))
        frame->effect = true;
    if (w->violation.property) {
        sim_search_violation(search);
        return -EINVAL;
    }
    if (!well) {
        search->report->result = SIM_NO_MEMORY;
        return -ENOMEM;
    }
    if (w->arena.hash == before && !search->options->exact) { /* a look that found nothing */
        sim_arena_undo(&w->arena, mark);
        return 0;
    }
    return enter_state(search, path, mark);
}

static void exhaust(struct sim_search *search, struct path *path)
{
    struct sim_report *report = search->report;
    if (enter_state(search, path, sim_arena_mark(&search->w->arena)) != 0)
        return;
    while (path->depth != 0) {
        const struct frame *frame = &path->frames[path->depth - 1];
        if (frame->next == frame->count) {
            if (!leave_state(search, path)) {
                sim_search_violation(search);
                return;
            }
        } else if (try_step(search, path) != 0 || !sim_search_goes_on(search)) {
            return;
        }
    }
    if (search->w->arena.failed)
        report->result = SIM_NO_MEMORY;
    else
        report->result = sim_all_reached(search->w) ? SIM_OK : SIM_VACUOUS;
}

static int explore_exhaustively(struct sim_search *search)
{
    struct path path = {0};
    exhaust(search, &path);
    int failed = 0;
    if (search->report->result == SIM_VIOLATION)
        failed = path_trace(&path, search->report);
    free(path.frames);
    free(path.steps);
    return failed;
}

/* ---- all modes --------------------------------------------------------------------------- */

static void finish(struct sim_search *search, size_t mark)
{
    struct sim_report *report = search->report;
    struct sim_world *w = search->w;
    report->states = sim_visited_count(search->visited);
    report->seconds = now_s() - search->started;
    size_t memory = memory_in_use(search) - sim_visited_octets(search->visited) +
                    sim_visited_peak(search->visited);
    if (memory > report->memory_octets)
        report->memory_octets = memory;
    double n = (double)report->states;
    report->collision = search->options->exact ? 0 : n * n / 36893488147419103232.0; /* 2^65 */
    report->digest = sim_mix64(report->digest + sim_mix64(report->states) +
                               sim_mix64(report->transitions + 1) + report->quiescent_digest);
    memcpy(report->reached, w->reached, sizeof report->reached);
    w->count_reached = false;
    sim_arena_undo(&w->arena, mark);
}

int sim_explore(struct sim_world *w, const struct sim_explore *options, struct sim_report *report)
{
    memset(report, 0, sizeof *report);
    struct sim_search search = {.w = w, .options = options, .report = report};
    search.visited = sim_visited_new(options->exact, &w->arena,
                                     options->max_memory_octets ? options->max_memory_octets
                                                                : DEFAULT_MEMORY_OCTETS);
    if (!search.visited)
        return -ENOMEM;
    search.started = now_s();
    search.next_progress = search.started + PROGRESS_SECONDS;
    memset(w->reached, 0, sizeof w->reached);
    w->count_reached = true;
    size_t mark = sim_arena_mark(&w->arena);
    int failed = 0;
    bool born_wrong = w->violation.property != NULL;
    if (born_wrong) /* what an agent does before its first step can be wrong already */
        sim_search_violation(&search);
    else
        failed =
            options->mode == SIM_EXHAUSTIVE ? explore_exhaustively(&search) : sim_walk(&search);
    finish(&search, mark);
    if (!born_wrong)
        w->violation.property = NULL;
    sim_visited_free(search.visited);
    return failed;
}

void sim_report_free(struct sim_report *report)
{
    free(report->trace);
    report->trace = NULL;
}
