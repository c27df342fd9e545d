// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Runs the benches of a library from reset on; the other half is library.py. Included after the file that defines Job and
// TheBench; INSTANCES and MODMILL_BENCHES are generated.
//
// Before that the model may run on noise for a while, so that the reset finds it in the middle of something. A run may be
// cut off by a reset too; it then begins anew with the same operands.
//
// One cycle: inputs change while the clock is low, the model settles, outputs are sampled, the clock rises.

namespace {

constexpr uint64_t NOISE_MASK = 0xff;  // so many cycles of noise at most, and NOISE_LEAST more
constexpr uint64_t NOISE_LEAST = 32;

struct Simulation {
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    std::unique_ptr<TheBench> bench[INSTANCES];
    Job* jobs;
    uint64_t cycle = 0, restart;

    explicit Simulation(Job* jobs) : jobs(jobs), restart(jobs[0].start.restart) {
        const Start& how = jobs[0].start;
        context.randReset(2);  // registers start from random values
        context.randSeed(static_cast<int>(seeded(how.seed) & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        begin();
        const uint64_t first = how.reset > how.power_up ? how.reset : how.power_up;
        if (how.noise) {
            std::mt19937_64 noise(how.seed);
            for (auto& b : bench) b->disturb(noise);
            reset(first);
            for (uint64_t k = NOISE_LEAST + (noise() & NOISE_MASK); k; --k) {
                for (auto& b : bench) b->disturb(noise);
                low();
                high();
            }
        }
        reset(how.noise ? how.reset : first);
        begin();
    }

    void begin() {
        Vmodel& top = *model;
        MODMILL_BENCHES
        for (int k = 0; k < INSTANCES; ++k) bench[k]->start(&jobs[k]);
        cycle = 0;
    }

    void reset(uint64_t cycles) {
        model->rst = 1;
        for (; cycles; --cycles) {
            low();
            high();
        }
        model->rst = 0;
    }

    ~Simulation() { model->final(); }

    void low() {
        model->clk = 0;
        model->eval();
    }

    void high() {
        model->clk = 1;
        model->eval();
    }

    bool step(uint64_t cycles) {
        for (uint64_t k = 0; k < cycles; ++k, ++cycle) {
            if (restart && cycle == restart) {
                restart = 0;
                reset(jobs[0].start.reset);
                begin();
            }
            bool all_done = true;
            for (auto& b : bench) {
                if (!b->done()) {
                    b->drive(cycle);
                    all_done = false;
                }
            }
            if (all_done) return true;
            low();
            for (auto& b : bench) {
                if (!b->done()) b->sample(cycle);
            }
            high();
        }
        return false;
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* modmill_start(Job* jobs) { return new Simulation(jobs); }
EXPORT int modmill_step(void* simulation, uint64_t cycles) { return static_cast<Simulation*>(simulation)->step(cycles); }
EXPORT void modmill_end(void* simulation) { delete static_cast<Simulation*>(simulation); }
