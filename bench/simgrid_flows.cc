/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bare SimGrid: sends flows that `flows record` has written, as a program would that has nothing
 * but SimGrid.
 *
 *     simgrid_flows < FLOWS
 *
 * The model and its settings are those of sim/timed/wire_simgrid.cc, so is what a message is: a
 * Comm without actors, and a callback when it has ended. Of a flow one is on its way at a time. A
 * timer begins what begins at the same nanosecond. There is no clock of ours, no order among what
 * happens at the same time, and no latency. Prints as `flows play` does.
 */
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <iostream>
#include <string>
#include <vector>

namespace
{

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

constexpr double NS = 1e9; /* in a second */
constexpr double LATE_S =
    1e-12; /* flows begin so much later, when those that end then have ended */

struct Flow {
    bool under_way = false;
    std::deque<size_t> waiting; /* messages */
};

struct Message {
    uint64_t start_ns;
    uint32_t flow, from, to, octets;
};

struct Player {
    std::vector<s4u::Host *> hosts;
    std::vector<Message> messages;
    std::vector<Flow> flows;
    std::vector<s4u::CommPtr> ended; /* cannot be let go in the callback: SimGrid uses it then */
    size_t next = 0, through = 0;
    double last_s = 0;
};

Player player;

void begin(size_t number)
{
    Message &m = player.messages[number];
    s4u::CommPtr comm = s4u::Comm::sendto_init(player.hosts[m.from], player.hosts[m.to]);
    comm->set_payload_size(m.octets);
    comm->set_data(&m);
    comm->start();
    comm.detach();
    player.flows[m.flow].under_way = true;
}

/* Those that begin now; then those of the next time. */
void begin_some()
{
    player.ended.clear();
    double now_s = s4u::Engine::get_clock();
    for (; player.next < player.messages.size(); player.next++) {
        const Message &m = player.messages[player.next];
        double date_s = (static_cast<double>(m.start_ns) / NS) + LATE_S;
        if (date_s > now_s) {
            Timer::set(date_s, begin_some);
            return;
        }
        Flow &flow = player.flows[m.flow];
        if (flow.under_way)
            flow.waiting.push_back(player.next);
        else
            begin(player.next);
    }
}

void on_completion(const s4u::Activity &activity)
{
    const Message *m = activity.get_data<Message>();
    Flow &flow = player.flows[m->flow];
    player.ended.emplace_back(dynamic_cast<s4u::Comm *>(const_cast<s4u::Activity *>(&activity)),
                              false);
    player.through++;
    player.last_s = s4u::Engine::get_clock();
    flow.under_way = false;
    if (flow.waiting.empty())
        return;
    size_t number = flow.waiting.front();
    flow.waiting.pop_front();
    Timer::set(player.last_s, [number]() { begin(number); });
}

void make_network(s4u::NetZone *zone, uint32_t ports, double octets_per_ns)
{
    for (uint32_t i = 0; i < ports; i++) {
        const std::string name = std::to_string(i);
        const std::vector<double> rates = {octets_per_ns * NS};
#if SIMGRID_VERSION >= 40000
        s4u::Host *host = zone->add_host("port " + name, 1e9);
        s4u::Link *up = zone->add_link("up " + name, rates);
        s4u::Link *down = zone->add_link("down " + name, rates);
#else
        s4u::Host *host = zone->create_host("port " + name, 1e9);
        s4u::Link *up = zone->create_link("up " + name, rates);
        s4u::Link *down = zone->create_link("down " + name, rates);
#endif
        up->set_latency(0.0)->seal();
        down->set_latency(0.0)->seal();
        host->seal();
        zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {s4u::LinkInRoute(up)},
                        false);
        zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(down)},
                        false);
        player.hosts.push_back(host);
    }
    zone->seal();
}

bool read_messages(uint32_t *ports, double *octets_per_ns)
{
    uint64_t count = 0;
    std::cin >> *ports >> *octets_per_ns >> count;
    for (; std::cin && count > 0; count--) {
        Message m = {};
        std::cin >> m.start_ns >> m.flow >> m.from >> m.to >> m.octets;
        if (m.flow >= player.flows.size())
            player.flows.resize(m.flow + 1);
        player.messages.push_back(m);
    }
    return static_cast<bool>(std::cin);
}

} // namespace

int main()
{
    uint32_t ports = 0;
    double octets_per_ns = 0;
    std::vector<std::string> words = {
        "simgrid_flows",
#if SIMGRID_VERSION >= 40000
        "--cfg=network/model:raw",
#else
        "--cfg=network/model:CM02",
#endif
        "--cfg=network/crosstraffic:0",
        "--cfg=network/TCP-gamma:1e15",
#if SIMGRID_VERSION >= 33600
        "--cfg=precision/timing:1e-13",
#else
        "--cfg=surf/precision:1e-13",
#endif
        "--log=root.thresh:critical",
    };
    std::vector<char *> argv;
    argv.reserve(words.size() + 1);
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    int argc = static_cast<int>(words.size());
    s4u::Engine engine(&argc, argv.data());
    if (!read_messages(&ports, &octets_per_ns)) {
        std::fprintf(stderr, "simgrid_flows: these are no flows\n");
        return 2;
    }
    make_network(s4u::create_star_zone("star"), ports, octets_per_ns);
#if SIMGRID_VERSION >= 33400
    s4u::Comm::on_completion_cb([](const s4u::Comm &comm) { on_completion(comm); });
#else
    s4u::Activity::on_completion_cb(on_completion);
#endif
    Timer::set(0, begin_some);
    std::clock_t before = std::clock();
    engine.run();
    double took_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    player.ended.clear();
    std::printf("%zu %.0f %.3f\n", player.through, std::ceil((player.last_s - LATE_S) * NS - 1e-4),
                took_s);
    return player.through == player.messages.size() ? 0 : 1;
}
