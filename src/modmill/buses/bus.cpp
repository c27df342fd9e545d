// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Drives a bus front, one access at a time; the other half is simulate.py, which defines MODMILL_<BUS>, and
// MODMILL_SEPARATE for an engine with a clock of its own, MODMILL_KEY_SLOTS for a port of a key manager, MODMILL_RANDOM
// for a port for random words.
//
// One cycle: inputs change while the clock is low, the model settles, outputs are sampled, the clock rises. Edges of the
// engine's clock come between those of the bus clock, where its period puts them.

#include <deque>
#include <utility>

#include "verilated_sym_props.h"
#include "verilated_syms.h"

namespace {

constexpr int LIMIT = 1000;         // cycles of an access, after which the bus hangs
constexpr uint64_t HALF = 1000000;  // half a period of the bus clock

enum Response { OKAY, REFUSED, HANGS };
enum Packet { PACKET_WORD, PACKET_LAST = 4, PACKET_NEXT = 4 };  // addresses, as in simulate.py

struct Bus {
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    uint64_t cycles = 0;
    uint64_t half = HALF, now = 0, next = HALF / 3;  // of the engine's clock; time; its next edge

    explicit Bus(uint64_t seed) {
        context.randReset(2);  // registers start from random values
        context.randSeed(static_cast<int>(seeded(seed) & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        idle();
        offer();
#if defined(MODMILL_SEPARATE)
        model->rst = model->clk = model->engine_clk = 0;
        model->eval();  // so that rst rises, which sets registers at once: a simulator waits for an edge
#endif
    }

    ~Bus() {
        Verilated::threadContextp(&context);  // in which the model takes back its names
        model->final();
    }

    // Half a period of the bus clock passes.
    void pass() {
#if defined(MODMILL_SEPARATE)
        for (now += HALF; next <= now; next += half) {
            model->engine_clk = !model->engine_clk;
            model->eval();
            if (model->engine_clk) draw();
        }
#endif
    }

#if defined(MODMILL_RANDOM)
    uint64_t random_seed = 0, random_cycle = 0;
    int source = FRESH;

    // The word of each cycle of the device follows from the cycle, so two devices with the same past have the same ones.
    void draw() {
        const bool same = source == STUCK || (source == BIASED && random_cycle % 2);
        ++random_cycle;
        model->random_valid = source != MISSING;
        model->random_data = static_cast<uint32_t>(seeded(random_seed + (same ? 0 : random_cycle)) >> 16);
    }
#else
    void draw() {}
#endif

#if defined(MODMILL_KEY_SLOTS)
    std::deque<std::pair<uint32_t, bool>> keys;  // words of the key manager, and whether they end a packet

    // The key manager offers its next word.
    void offer() {
        model->key_valid = !keys.empty();
        if (!keys.empty()) {
            model->key_data = keys.front().first;
            model->key_last = keys.front().second;
        }
    }
    void taken() {
        if (model->key_valid && model->key_ready) keys.pop_front();
    }
#else
    void offer() {}
    void taken() {}
#endif

    void settle() {
        if (model->clk) pass();
        model->clk = 0;
        offer();
        model->eval();
    }

    void rise() {
        taken();
        pass();
        model->clk = 1;
        model->eval();
#if !defined(MODMILL_SEPARATE)
        draw();
#endif
        ++cycles;
    }

    void reset(uint64_t count) {
        idle();
        model->rst = 1;
        for (; count; --count) {
            settle();
            rise();
        }
        model->rst = 0;
    }

    // Calls back with each register and memory that is public: name, contents, their bytes.
    void contents(void (*found)(const char*, const void*, uint64_t)) {
        for (const auto& scope : *context.scopeNameMap()) {
            if (!scope.second->varsp()) continue;
            for (const auto& each : *scope.second->varsp()) {
                const VerilatedVar& var = each.second;
                uint64_t bytes = var.entSize();
                for (const auto& range : var.unpackedRanges()) bytes *= range.elements();
                found((std::string(scope.first) + "." + each.first).c_str(), var.datap(), bytes);
            }
        }
    }

#if defined(MODMILL_AXI_STREAM)
    struct Word {
        uint32_t data;
        bool last;
        uint32_t bytes;
    };
    std::deque<Word> sent, received;
    uint64_t packets = 0;  // whole ones that are received

    void idle() {
        model->s_axis_tvalid = model->m_axis_tready = 0;
        sent.clear();
        received.clear();
        packets = 0;
    }

    // Cycles in which words are given and taken as soon as they can be; those for a packet end when it is there.
    uint64_t wait(uint64_t most, bool for_packet) {
        for (uint64_t count = 0; count < most; ++count) {
            if (for_packet && packets) return count;
            model->s_axis_tvalid = !sent.empty();
            if (!sent.empty()) {
                model->s_axis_tdata = sent.front().data;
                model->s_axis_tlast = sent.front().last;
                model->s_axis_tkeep = sent.front().bytes;
            }
            model->m_axis_tready = 1;
            settle();
            const bool given = model->s_axis_tvalid && model->s_axis_tready;
            if (model->m_axis_tvalid) {
                received.push_back({model->m_axis_tdata, static_cast<bool>(model->m_axis_tlast), 0});
                packets += received.back().last;
            }
            rise();
            if (given) sent.pop_front();
        }
        return most;
    }

    // A word of a packet to or from the queues on this side, or what the next one is; no cycle passes.
    int access(bool write, uint32_t address, uint32_t bytes, uint32_t* data) {
        if (write && address <= PACKET_LAST) {
            sent.push_back({*data, address == PACKET_LAST, bytes});
        } else if (!write && address == PACKET_NEXT) {
            *data = received.empty() ? 0 : 1 + 2 * received.front().last;
        } else if (!write && address == PACKET_WORD && !received.empty()) {
            *data = received.front().data;
            packets -= received.front().last;
            received.pop_front();
        } else {
            return REFUSED;
        }
        return OKAY;
    }
#else
    uint64_t wait(uint64_t most, bool for_interrupt) {
        for (uint64_t count = 0; count < most; ++count) {
            settle();
            if (for_interrupt && model->irq) return count;
            rise();
        }
        return most;
    }
#endif

#if defined(MODMILL_AXI4_LITE)
    void idle() {
        model->s_axi_awvalid = model->s_axi_wvalid = model->s_axi_arvalid = 0;
        model->s_axi_bready = model->s_axi_rready = 0;
    }

    int access(bool write, uint32_t address, uint32_t bytes, uint32_t* data) {
        model->s_axi_awaddr = model->s_axi_araddr = address;
        model->s_axi_wdata = *data;
        model->s_axi_wstrb = bytes;
        model->s_axi_awvalid = model->s_axi_wvalid = model->s_axi_bready = write;
        model->s_axi_arvalid = model->s_axi_rready = !write;
        for (int k = 0; k < LIMIT; ++k) {
            settle();
            const bool aw = model->s_axi_awready, w = model->s_axi_wready, ar = model->s_axi_arready;
            const bool done = write ? model->s_axi_bvalid : model->s_axi_rvalid;
            const int response = write ? model->s_axi_bresp : model->s_axi_rresp;
            if (done && !write) *data = model->s_axi_rdata;
            rise();
            if (aw) model->s_axi_awvalid = 0;
            if (w) model->s_axi_wvalid = 0;
            if (ar) model->s_axi_arvalid = 0;
            if (done) {
                idle();
                return response ? REFUSED : OKAY;
            }
        }
        return HANGS;
    }
#elif defined(MODMILL_WISHBONE)
    void idle() { model->wb_cyc_i = model->wb_stb_i = 0; }

    int access(bool write, uint32_t address, uint32_t bytes, uint32_t* data) {
        model->wb_cyc_i = model->wb_stb_i = 1;
        model->wb_we_i = write;
        model->wb_adr_i = address;
        model->wb_dat_i = *data;
        model->wb_sel_i = bytes;
        for (int k = 0; k < LIMIT; ++k) {
            settle();
            const bool ack = model->wb_ack_o, err = model->wb_err_o;
            if (ack && !write) *data = model->wb_dat_o;
            rise();
            if (ack || err) {
                idle();
                return err ? REFUSED : OKAY;
            }
        }
        return HANGS;
    }
#elif defined(MODMILL_APB)
    void idle() { model->psel = model->penable = 0; }

    int access(bool write, uint32_t address, uint32_t bytes, uint32_t* data) {
        model->psel = 1;
        model->penable = 0;
        model->pwrite = write;
        model->paddr = address;
        model->pwdata = *data;
        model->pstrb = bytes;
        settle();
        rise();
        model->penable = 1;
        for (int k = 0; k < LIMIT; ++k) {
            settle();
            const bool ready = model->pready, error = model->pslverr;
            if (ready && !write) *data = model->prdata;
            rise();
            if (ready) {
                idle();
                return error ? REFUSED : OKAY;
            }
        }
        return HANGS;
    }
#elif defined(MODMILL_AHB_LITE)
    void idle() {
        model->hsel = model->htrans = 0;
        model->hready = 1;
    }

    int access(bool write, uint32_t address, uint32_t bytes, uint32_t* data) {
        model->hsel = 1;
        model->htrans = 2;
        model->hwrite = write;
        model->haddr = address;
        model->hsize = bytes == 15 ? 2 : 0;
        settle();
        rise();
        model->hsel = model->htrans = 0;
        model->hwdata = *data;
        for (int k = 0; k < LIMIT; ++k) {
            model->hready = model->hreadyout;
            settle();
            const bool ready = model->hreadyout, error = model->hresp;
            if (ready && !write) *data = model->hrdata;
            rise();
            if (ready) {
                idle();
                return error ? REFUSED : OKAY;
            }
        }
        return HANGS;
    }
#endif
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* modmill_bus_start(uint64_t seed) { return new Bus(seed); }
EXPORT void modmill_bus_end(void* bus) { delete static_cast<Bus*>(bus); }
EXPORT void modmill_bus_clock(void* bus, uint64_t half) { static_cast<Bus*>(bus)->half = half; }
EXPORT void modmill_bus_reset(void* bus, uint64_t cycles) { static_cast<Bus*>(bus)->reset(cycles); }
EXPORT void modmill_bus_contents(void* bus, void (*found)(const char*, const void*, uint64_t)) {
    static_cast<Bus*>(bus)->contents(found);
}
EXPORT uint64_t modmill_bus_cycles(void* bus) { return static_cast<Bus*>(bus)->cycles; }
EXPORT uint64_t modmill_bus_wait(void* bus, uint64_t most, int for_interrupt) {
    return static_cast<Bus*>(bus)->wait(most, for_interrupt);
}
#if defined(MODMILL_KEY_SLOTS)
EXPORT void modmill_bus_key(void* bus, uint32_t word, int last) {
    static_cast<Bus*>(bus)->keys.emplace_back(word, last);
}
EXPORT uint64_t modmill_bus_keys(void* bus) { return static_cast<Bus*>(bus)->keys.size(); }
#endif
#if defined(MODMILL_RANDOM)
EXPORT void modmill_bus_random(void* bus, uint64_t seed, int source) {
    static_cast<Bus*>(bus)->random_seed = seed;
    static_cast<Bus*>(bus)->source = source;
}
#endif
EXPORT int modmill_bus_access(void* bus, int write, uint32_t address, uint32_t bytes, uint32_t* data) {
    return static_cast<Bus*>(bus)->access(write, address, bytes, data);
}
