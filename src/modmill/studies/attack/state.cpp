// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Where a model keeps its registers and memories; state.py defines MODMILL_STATE, which names all of them, and
// MODMILL_PORTS, which names the addresses of the ports of memories.

#include "Vmodel___024root.h"

#include <algorithm>
#include <vector>

void Vmodel___024root___eval_settle(Vmodel___024root* vlSelf);

namespace {

struct Place {  // a register, or a memory of several words
    uint8_t* data;
    size_t stride, words;
};

template <class Word> Place place_of(Word& word) { return {reinterpret_cast<uint8_t*>(&word), sizeof(Word), 1}; }
template <class Word, size_t depth> Place place_of(VlUnpacked<Word, depth>& memory) {
    return {reinterpret_cast<uint8_t*>(&memory[0]), sizeof(Word), depth};
}

template <class Model> std::vector<Place> places_of(Model& model) {
    std::vector<Place> places;
#define STATE(name) places.push_back(place_of(model.rootp->name));
    MODMILL_STATE
#undef STATE
    return places;
}

// A fresh word at the port for random words, of a model that has one.
template <class Model> auto offer_random(Model& model, uint64_t seed, int) -> decltype(model.random_valid, void()) {
    model.random_valid = 1;
    model.random_data = static_cast<uint32_t>(seeded(seed) >> 16);
}
template <class Model> void offer_random(Model&, uint64_t, long) {}

}  // namespace
