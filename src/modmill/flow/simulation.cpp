// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Runs the benches of a library from reset on; the other half is library.py. Included after the file that defines Job and
// TheBench; INSTANCES and MODMILL_BENCHES are generated.
//
// Before that the model runs on noise for a while, so that the reset of one cycle finds it in the middle of something.
//
// One cycle: inputs change while the clock is low, the model settles, outputs are sampled, the clock rises.

namespace {

constexpr uint64_t RESET_CYCLES = 4;   // after power-up
constexpr uint64_t NOISE_MASK = 0xff;  // so many cycles of noise at most, and NOISE_LEAST more
constexpr uint64_t NOISE_LEAST = 32;

struct Simulation {
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    std::unique_ptr<TheBench> bench[INSTANCES];
    uint64_t cycle = 0;

    explicit Simulation(Job* jobs) {
        context.randReset(2);  // registers start from random values
        context.randSeed(static_cast<int>(seeded(jobs[0].seed) & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        Vmodel& top = *model;
        MODMILL_BENCHES
#ifdef MODMILL_NO_NOISE
        start(jobs);
        reset(RESET_CYCLES);
#else
        std::mt19937_64 noise(jobs[0].seed);
        for (auto& b : bench) b->disturb(noise);
        reset(RESET_CYCLES);
        for (uint64_t k = NOISE_LEAST + (noise() & NOISE_MASK); k; --k) {
            for (auto& b : bench) b->disturb(noise);
            low();
            high();
        }
        reset(1);
        start(jobs);
#endif
    }

    void start(Job* jobs) {
        for (int k = 0; k < INSTANCES; ++k) bench[k]->start(&jobs[k]);
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
