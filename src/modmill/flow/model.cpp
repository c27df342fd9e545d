// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// What every library begins with.

#include "Vmodel.h"
#include "verilated.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>

struct Start {  // how a run begins; the same layout stands in library.py
    uint64_t seed;
    uint64_t reset;    // cycles of the reset before the run
    uint64_t power_up; // cycles of the first reset at least
    uint64_t first;    // first cycle after it in which anything is offered
    uint64_t noise;    // whether the model runs on noise before that reset
    uint64_t restart;  // cycle in which the run is cut off by another such reset and begins anew; 0: none
};

namespace {

enum Source { FRESH, MISSING, STUCK, BIASED };  // of random words, in the order of words.py

uint64_t seeded(uint64_t seed) {  // splitmix64, so that neighbouring seeds do not resemble each other
    uint64_t z = seed + 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return z ? z : 1;
}

}  // namespace
