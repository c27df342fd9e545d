// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Runs a system (module bench); the other half is simulate.py, which defines MODMILL_JOBS and MODMILL_CYCLES: the ports
// job_k and cycles_k of its devices.

#include <string>
#include <vector>

namespace {

struct Job {  // the same layout stands in simulate.py
    uint32_t device;
    uint32_t cycles;
};

struct Soc {
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    std::string text;
    std::vector<Job> jobs;
    uint64_t cycles = 0, refused = 0;

    explicit Soc(uint64_t seed) {
        context.randReset(2);  // registers and memory start from random values
        context.randSeed(static_cast<int>(seeded(seed) & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        model->rst = 1;
        model->load_valid = 0;
    }

    ~Soc() { model->final(); }

    void rise() {
        model->clk = 1;
        model->eval();
        ++cycles;
    }

    void settle() {
        model->clk = 0;
        model->eval();
    }

    void load(const uint32_t* words, uint64_t count, uint64_t reset) {
        model->load_valid = 1;
        for (uint64_t k = 0; k < count; ++k) {
            model->load_address = static_cast<uint32_t>(k);
            model->load_data = words[k];
            settle();
            rise();
        }
        model->load_valid = 0;
        for (; reset; --reset) {
            settle();
            rise();
        }
        model->rst = 0;
        cycles = 0;
    }

    bool run(uint64_t most) {  // whether it has ended
        for (; most; --most) {
            settle();
            if (model->console_valid) text += static_cast<char>(model->console_data);
            refused += model->refused;
            const uint8_t job[] = {MODMILL_JOBS};
            const uint32_t counted[] = {MODMILL_CYCLES};
            for (uint32_t k = 0; k < sizeof job / sizeof *job; ++k) {
                if (job[k]) jobs.push_back({k, counted[k]});
            }
            if (model->ended || model->trap) return true;
            rise();
        }
        return false;
    }
};

Soc& the(void* soc) { return *static_cast<Soc*>(soc); }

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* modmill_soc_start(uint64_t seed) { return new Soc(seed); }
EXPORT void modmill_soc_end(void* soc) { delete static_cast<Soc*>(soc); }
EXPORT void modmill_soc_load(void* soc, const uint32_t* words, uint64_t count, uint64_t reset) {
    the(soc).load(words, count, reset);
}
EXPORT int modmill_soc_run(void* soc, uint64_t cycles) { return the(soc).run(cycles); }
EXPORT uint64_t modmill_soc_cycles(void* soc) { return the(soc).cycles; }
EXPORT uint64_t modmill_soc_refused(void* soc) { return the(soc).refused; }
EXPORT uint32_t modmill_soc_status(void* soc) { return the(soc).model->trap ? 0xffffffffu : the(soc).model->status; }
EXPORT const char* modmill_soc_text(void* soc) { return the(soc).text.c_str(); }
EXPORT uint64_t modmill_soc_count(void* soc) { return the(soc).jobs.size(); }
EXPORT const Job* modmill_soc_jobs(void* soc) { return the(soc).jobs.data(); }
