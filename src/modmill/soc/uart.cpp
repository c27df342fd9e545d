// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// A host at the serial line of module board; the other half is serial.py.

namespace {

struct Line {
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    uint64_t divider, cycles = 0;

    Line(uint64_t seed, uint64_t bit) : divider(bit) {
        context.randReset(2);  // registers start from random values
        context.randSeed(static_cast<int>(seeded(seed) & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        model->uart_rx = 1;
    }

    ~Line() { model->final(); }

    void step() {
        model->clk_pin = 0;
        model->eval();
        model->clk_pin = 1;
        model->eval();
        ++cycles;
    }

    void hold(int level, uint64_t count) {
        model->uart_rx = level;
        for (; count; --count) step();
    }

    // Send bytes and receive others, until `wanted` came or `most` cycles passed; the number that came.
    uint64_t exchange(const uint8_t* bytes, uint64_t count, uint8_t* found, uint64_t wanted, uint64_t most) {
        uint64_t sent_bits = 0, wait = 0, came = 0, next = 0;
        int left = 0;
        uint8_t byte = 0;
        for (uint64_t k = 0; k < most && (sent_bits < 10 * count || wait || came < wanted); ++k) {
            if (wait) {
                --wait;
            } else if (sent_bits < 10 * count) {
                const uint64_t bit = sent_bits % 10;
                const uint8_t value = bytes[sent_bits / 10];
                model->uart_rx = bit == 0 ? 0 : bit == 9 ? 1 : value >> (bit - 1) & 1;
                ++sent_bits;
                wait = divider - 1;
            }
            step();
            if (!left) {
                if (!model->uart_tx) {
                    left = 9;
                    next = cycles + divider + divider / 2;
                }
            } else if (cycles == next) {
                next += divider;
                if (--left) {
                    byte = static_cast<uint8_t>(byte >> 1 | model->uart_tx << 7);
                } else if (came < wanted) {
                    found[came++] = byte;
                } else {
                    return wanted + 1;
                }
            }
        }
        return came;
    }
};

Line& the(void* line) { return *static_cast<Line*>(line); }

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* modmill_line_start(uint64_t seed, uint64_t divider) { return new Line(seed, divider); }
EXPORT void modmill_line_end(void* line) { delete static_cast<Line*>(line); }
EXPORT void modmill_line_hold(void* line, int level, uint64_t cycles) { the(line).hold(level, cycles); }
EXPORT uint64_t modmill_line_cycles(void* line) { return the(line).cycles; }
EXPORT int modmill_line_led(void* line) { return the(line).model->led; }
EXPORT uint64_t modmill_line_exchange(void* line, const uint8_t* bytes, uint64_t count, uint8_t* found, uint64_t wanted,
                                      uint64_t most) {
    return the(line).exchange(bytes, count, found, wanted, most);
}
