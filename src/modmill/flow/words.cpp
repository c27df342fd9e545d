// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Drives engines with two streams of words inside the library that Verilator's C++ is compiled to; the other half is
// words.py, which defines INSTANCES and MODMILL_BENCHES.
//
// One cycle: inputs change while the clock is low, the engine settles, outputs are sampled, the clock rises.

#include "Vmodel.h"
#include "verilated.h"

#include <cstdint>
#include <memory>
#include <random>

namespace {

constexpr uint64_t RESET_CYCLES = 4;
constexpr uint64_t BURST_MASK = 15;  // a pause in four lasts 2 to 17 cycles

enum Fault { VALID_DROPPED, WORD_CHANGED, WORD_TOO_MANY, VALID_AFTER_RESET, FAULTS };

}  // namespace

struct Job {  // the same layout stands in words.py
    uint64_t words;
    const uint64_t* i;
    uint64_t wanted;
    uint64_t* o;
    uint64_t* accepted;
    uint64_t* valid;
    uint32_t gap;
    uint32_t stall;
    uint64_t seed;
    uint64_t timeout;
    uint64_t drain;
    uint64_t accepted_count;
    uint64_t taken_count;
    uint64_t cycles;
    uint64_t timed_out;
    uint64_t faults[FAULTS];
    uint64_t first[FAULTS];
};

namespace {

class Pauses {
public:
    Pauses(uint32_t of_2_32, uint64_t seed) : chance(of_2_32), random(seed) {}
    bool next() {
        if (left) {
            --left;
            return true;
        }
        if (!chance || static_cast<uint32_t>(random()) >= chance) return false;
        const uint64_t drawn = random();
        left = drawn & 3 ? 0 : 1 + (drawn >> 2 & BURST_MASK);
        return true;
    }
    uint64_t noise() { return random(); }

private:
    uint32_t chance;
    uint64_t left = 0;
    std::mt19937_64 random;
};

template <class Word> class Bench {
public:
    Bench(CData& i_valid, CData& i_ready, Word& i_data, CData& o_valid, CData& o_ready, Word& o_data, uint64_t mask)
        : i_valid(i_valid), i_ready(i_ready), i_data(i_data), o_valid(o_valid), o_ready(o_ready), o_data(o_data),
          mask(mask) {}

    void start(Job* new_job) {
        job = new_job;
        producer = Pauses(job->gap, job->seed);
        consumer = Pauses(job->stall, job->seed + 1);
        i_valid = 0;
        o_ready = 0;
    }

    bool done() const { return finished; }

    void drive(uint64_t cycle) {
        if (!presenting) {
            presenting = cycle && job->accepted_count < job->words && !producer.next();
            i_valid = presenting;
            i_data = static_cast<Word>(presenting ? job->i[job->accepted_count] : producer.noise() & mask);
        }
        o_ready = !consumer.next();
    }

    void sample(uint64_t cycle) {
        if (cycle == 0 && o_valid) fault(VALID_AFTER_RESET, cycle);
        if (i_valid && i_ready) {
            job->accepted[job->accepted_count++] = cycle;
            presenting = false;
            last_event = cycle;
        }
        if (waiting && !o_valid) fault(VALID_DROPPED, cycle);
        if (waiting && o_valid && o_data != held) fault(WORD_CHANGED, cycle);
        if (o_valid) {
            last_event = cycle;
            if (job->taken_count == job->wanted) {
                fault(WORD_TOO_MANY, cycle);
            } else {
                if (!waiting) job->valid[job->taken_count] = cycle;
                if (o_ready) job->o[job->taken_count++] = o_data;
            }
        }
        held = o_data;
        waiting = o_valid && !o_ready;
        if (job->taken_count == job->wanted && job->accepted_count == job->words) {
            if (!job->cycles) job->cycles = cycle + 1;
            finished = cycle >= job->cycles + job->drain;
        } else if (cycle - last_event > job->timeout) {
            job->cycles = cycle + 1;
            job->timed_out = 1;
            finished = true;
        }
    }

private:
    void fault(Fault kind, uint64_t cycle) {
        if (!job->faults[kind]++) job->first[kind] = cycle;
    }

    CData &i_valid, &i_ready;
    Word& i_data;
    CData &o_valid, &o_ready;
    Word& o_data;
    uint64_t mask;
    Job* job = nullptr;
    Pauses producer{0, 1}, consumer{0, 2};
    bool presenting = false, waiting = false, finished = false;
    Word held = 0;
    uint64_t last_event = 0;
};

using TheBench = Bench<std::remove_reference_t<decltype((MODMILL_WORD))>>;

struct Simulation {
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    std::unique_ptr<TheBench> bench[INSTANCES];
    uint64_t cycle = 0;

    explicit Simulation(Job* jobs) {
        context.randReset(2);  // registers start from random values
        context.randSeed(static_cast<int>(std::mt19937_64(jobs[0].seed)() & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        Vmodel& top = *model;
        MODMILL_BENCHES
        for (int k = 0; k < INSTANCES; ++k) bench[k]->start(&jobs[k]);
        top.rst = 1;
        for (uint64_t k = 0; k < RESET_CYCLES; ++k) {
            model->clk = 0;
            model->eval();
            model->clk = 1;
            model->eval();
        }
        top.rst = 0;
    }

    ~Simulation() { model->final(); }

    bool step(uint64_t cycles) {
        for (uint64_t k = 0; k < cycles; ++k, ++cycle) {
            bool all_done = true;
            for (auto& b : bench) {
                if (!b->done()) {
                    b->drive(cycle);
                    all_done = false;
                }
            }
            if (all_done) return true;
            model->clk = 0;
            model->eval();
            for (auto& b : bench) {
                if (!b->done()) b->sample(cycle);
            }
            model->clk = 1;
            model->eval();
        }
        return false;
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* modmill_start(Job* jobs) { return new Simulation(jobs); }
EXPORT int modmill_step(void* simulation, uint64_t cycles) { return static_cast<Simulation*>(simulation)->step(cycles); }
EXPORT void modmill_end(void* simulation) { delete static_cast<Simulation*>(simulation); }
