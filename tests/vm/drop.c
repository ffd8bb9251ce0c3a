/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many connections, one after the other in each of several processes: every other one ends well, by
 * GOODBYE, and the others without a word at any moment: while they are being made, when they are
 * there, or with a request under way; by rdma_disconnect(), because their queue pair is destroyed,
 * or with their process.
 *
 * Usage: vm-drop ADDRESS COUNT PROCESSES SEED
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/vm/session.h"

#define LIVES 25u     /* connections of a process */
#define IDENTITIES 8u /* that a process uses in turn: the target may not have missed the last yet */
#define FIRST 1000u   /* of them */
#define MOST_POLLS 40u /* while a connection is made */
#define MOST_PROCESSES 16u

enum moment { CONNECTING, READY, BUSY, MOMENTS };

static void request(struct session *s)
{
    struct kbtp_operation store = session_operation(s, KBTP_OP_ALLOC_STORE, 0, 0);
    session_submit(s, &store, 0);
}

/* Until a moment at which it may end. */
static void go_on(struct session *s, uint64_t *random, enum moment moment)
{
    struct kbtp_outcome outcome;
    if (moment == CONNECTING) {
        for (uint32_t polls = pick(random, MOST_POLLS); polls > 0; polls--)
            (void)kbtp_initiator_poll(s->initiator, &s->cpu, &outcome, 1);
        return;
    }
    session_open(s);
    if (moment == BUSY)
        request(s);
}

static void disconnect(struct session *s)
{
    struct kbtp_outcome outcome;
    s->open = false; /* nobody is surprised */
    kbtp_initiator_disconnect(s->initiator, &s->cpu);
    while (kbtp_initiator_state(s->initiator) != KBTP_INITIATOR_DOWN)
        if (kbtp_initiator_poll(s->initiator, &s->cpu, &outcome, 1) == 0)
            (void)rdma_verbs_wait(s->cpu.rdma, 100000000);
}

static void live(struct rdma_verbs *device, const char *address, uint32_t identity,
                 uint64_t *random, bool last)
{
    struct session s;
    if (session_begin(&s, device, address, identity) != 0)
        give_up(4, "%s", rdma_verbs_failure(s.cpu.rdma));
    if (!last && pick(random, 2) == 0) {
        session_open(&s);
        session_leave(&s, true);
        return;
    }
    go_on(&s, random, (enum moment)pick(random, MOMENTS));
    if (last)
        _exit(0);
    if (pick(random, 3) == 0)
        disconnect(&s);
    session_close(&s);
}

static pid_t start(const char *address, uint32_t lane, uint32_t lives, uint64_t seed)
{
    pid_t pid = fork();
    if (pid < 0)
        give_up(4, "no process");
    if (pid > 0)
        return pid;
    struct rdma_verbs *device = session_device(address);
    uint64_t random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < lives; i++)
        live(device, address, FIRST + lane * IDENTITIES + i % IDENTITIES, &random, i + 1 == lives);
    _exit(1); /* the last one does not return */
}

/* Waits for a process; its lane. */
static uint32_t wait_for_one(const pid_t *pids, uint32_t count)
{
    int status;
    pid_t pid = wait(&status);
    for (uint32_t lane = 0; lane < count; lane++)
        if (pids[lane] == pid) {
            if (status != 0)
                give_up(1, "a process with connections ended with %d", status);
            return lane;
        }
    give_up(1, "wait");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        give_up(2, "usage: vm-drop ADDRESS COUNT PROCESSES SEED");
    pid_t pids[MOST_PROCESSES];
    uint32_t left = number_of(argv[2], "COUNT"), lanes = number_of(argv[3], "PROCESSES");
    uint32_t running = 0, lane = 0;
    uint64_t seed = (uint64_t)number_of(argv[4], "SEED") << 16;
    if (lanes < 1 || lanes > MOST_PROCESSES)
        give_up(2, "1 to %u processes", MOST_PROCESSES);
    while (left > 0) {
        lane = running < lanes ? running++ : wait_for_one(pids, lanes);
        uint32_t lives = left < LIVES ? left : LIVES;
        pids[lane] = start(argv[1], lane, lives, seed++);
        left -= lives;
    }
    while (running-- > 0)
        (void)wait_for_one(pids, lanes);
    printf("%s connections\n", argv[2]);
    return 0;
}
