// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Counts the bits that change in every cycle of a run, and sums their powers over many runs; the other half is
// traces.py, which defines how words pass the ports: MODMILL_LOAD(word) and MODMILL_SEND(word) put a word there,
// MODMILL_TAKE(word) reads one, MODMILL_LOAD_VALID and MODMILL_LOAD_READY belong to the first. state.cpp comes before.
//
// Everything that the model remembers lies in one structure, so a copy of it is a snapshot. Every run begins with the
// one that was made after the modulus was loaded and a first run was done.

#include <mutex>

typedef __int128 Wide __attribute__((aligned(8)));

struct Opening {  // the same layout stands in traces.py
    Start start;
    uint64_t loads;      // words that load the modulus
    const uint64_t* k;
    uint64_t words;      // of a run
    const uint64_t* i;   // those of the first run
    uint64_t wanted;     // words of an answer
    uint64_t patience;   // cycles without a word after which a run has failed
    const uint64_t* kinds;  // of each register, memory and net: CONSTANT, or the number of its class + 1
    uint64_t classes;    // without the last one, which is all
    uint64_t cycles;     // of a run; 0: no answer came
};

struct Batch {  // the same layout stands in traces.py
    uint64_t runs;
    const uint64_t* i;
    const uint64_t* groups;
    uint64_t* o;
    const uint64_t* seeds;  // of the random words of a run, for a model with a port for them
    uint64_t* late;  // whether the answer of a run ended in another cycle than that of the first run
};

struct Moments {  // the same layout stands in traces.py; sums of the powers of (count - count in the first run)
    int64_t first;
    uint64_t second;
    Wide third, fourth;
};

namespace {

constexpr uint64_t CONSTANT = 0;
constexpr uint64_t TAIL = 16;  // cycles after the answer
constexpr uint64_t LOAD_WORDS = MODMILL_LOAD_WORDS, SEND_WORDS = MODMILL_SEND_WORDS, TAKE_WORDS = MODMILL_TAKE_WORDS;

template <class Port> void put(Port& port, const uint64_t* words) { std::memcpy(&port, words, sizeof port); }
template <class Port> void get(const Port& port, uint64_t* words) { std::memcpy(words, &port, sizeof port); }

std::mutex adding;

uint64_t changed(const uint8_t* now, uint8_t* before, size_t size) {
    uint64_t count = 0;
    for (; size >= 8; size -= 8, now += 8, before += 8) {
        uint64_t x, y;
        std::memcpy(&x, now, 8);
        std::memcpy(&y, before, 8);
        if (x != y) {
            count += __builtin_popcountll(x ^ y);
            std::memcpy(before, &x, 8);
        }
    }
    for (; size; --size, ++now, ++before) {
        if (*now != *before) {
            count += __builtin_popcount(*now ^ *before);
            *before = *now;
        }
    }
    return count;
}

class Simulation {
public:
    explicit Simulation(Opening& opening) : wanted(opening.wanted), words(opening.words), classes(opening.classes) {
        context.randReset(2);  // registers start from random values
        context.randSeed(static_cast<int>(seeded(opening.start.seed) & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        const std::vector<Place> all = places_of(*model);
        watched.resize(classes);
        for (size_t k = 0; k < all.size(); ++k)
            if (opening.kinds[k] != CONSTANT) watched[opening.kinds[k] - 1].push_back(all[k]);
        size_t size = 0;
        for (const auto& some : watched)
            for (const Place& place : some) size += place.stride * place.words;
        before.resize(size);
        MODMILL_LOAD_VALID = model->i_valid = model->o_ready = 0;
        model->rst = 1;
        for (uint64_t k = std::max(opening.start.reset, opening.start.power_up); k; --k) step();
        model->rst = 0;
        model->o_ready = 1;
        if (!load(opening) || !answered(opening.i, opening.patience)) return;
        for (uint64_t k = 0; k < TAIL; ++k) step();
        const uint8_t* const root = reinterpret_cast<const uint8_t*>(model->rootp);
        snapshot.assign(root, root + sizeof *model->rootp);
        const uint64_t length = answered(opening.i, opening.patience);
        if (!length) return;
        opening.cycles = cycles = length + TAIL;
        counts.resize((classes + 1) * cycles);
        std::vector<uint64_t> o(wanted * TAKE_WORDS);
        run(opening.i, o.data());
        pivot = counts;
    }
    ~Simulation() { model->final(); }

    void run(const Batch& batch, Moments* sums) {
        const size_t entries = (classes + 1) * cycles;
        for (uint64_t k = 0; k < batch.runs; ++k) {
            random = batch.seeds[k];
            const uint64_t end = run(batch.i + k * words * SEND_WORDS, batch.o + k * wanted * TAKE_WORDS);
            batch.late[k] = end + TAIL != cycles;
            const std::lock_guard<std::mutex> guard(adding);
            Moments* const into = sums + batch.groups[k] * entries;
            for (size_t entry = 0; entry < entries; ++entry) {
                const int64_t d = static_cast<int64_t>(counts[entry]) - pivot[entry];
                if (!d) continue;
                const uint64_t square = static_cast<uint64_t>(d * d);
                into[entry].first += d;
                into[entry].second += square;
                into[entry].third += Wide(square) * d;
                into[entry].fourth += Wide(square) * square;
            }
        }
    }

    // Bits that change in one cycle of each run, in every register, memory and net.
    void look_at(const Batch& batch, uint64_t cycle, uint32_t* into) {
        const std::vector<Place> all = places_of(*model);
        std::vector<uint8_t> old;
        for (uint64_t k = 0; k < batch.runs; ++k) {
            begin();
            random = batch.seeds[k];
            uint64_t accepted = 0, taken = 0;
            for (uint64_t before = 0; before < cycle; ++before)
                cycle_of(batch.i + k * words * SEND_WORDS, accepted, taken, nullptr);
            old.clear();
            for (const Place& place : all) old.insert(old.end(), place.data, place.data + place.stride * place.words);
            cycle_of(batch.i + k * words * SEND_WORDS, accepted, taken, nullptr);
            uint8_t* was = old.data();
            for (const Place& place : all) {
                *into++ = static_cast<uint32_t>(changed(place.data, was, place.stride * place.words));
                was += place.stride * place.words;
            }
        }
    }

    size_t count() const { return places_of(*model).size(); }
    size_t bits(size_t place) const {
        const Place of = places_of(*model)[place];
        return 8 * of.stride * of.words;
    }

private:
    const uint64_t wanted, words, classes;
    uint64_t cycles = 0, random = 0;
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    std::vector<std::vector<Place>> watched;
    std::vector<uint8_t> before, snapshot;
    std::vector<uint32_t> counts, pivot;

    void begin() { std::copy(snapshot.begin(), snapshot.end(), reinterpret_cast<uint8_t*>(model->rootp)); }

    void step() {
        model->clk = 0;
        model->eval();
        model->clk = 1;
        model->eval();
    }

    bool load(const Opening& opening) {
        uint64_t quiet = 0;
        for (uint64_t done = 0; done < opening.loads;) {
            MODMILL_LOAD_VALID = 1;
            MODMILL_LOAD(opening.k + done * LOAD_WORDS);
            model->clk = 0;
            model->eval();
            const bool taken = MODMILL_LOAD_READY;
            model->clk = 1;
            model->eval();
            MODMILL_LOAD_VALID = 0;
            done += taken;
            if (quiet = taken ? 0 : quiet + 1; quiet > opening.patience) return false;
        }
        return true;
    }

    // Cycles of a run; 0 if its answer does not come.
    uint64_t answered(const uint64_t* i, uint64_t patience) {
        uint64_t accepted = 0, taken = 0, cycle = 0;
        for (uint64_t quiet = 0; taken < wanted && quiet <= patience; ++cycle) {
            const bool moved = cycle_of(i, accepted, taken, nullptr);
            quiet = moved ? 0 : quiet + 1;
        }
        model->i_valid = 0;
        return taken == wanted ? cycle : 0;
    }

    // One cycle of a run; returns whether a word passed.
    bool cycle_of(const uint64_t* i, uint64_t& accepted, uint64_t& taken, uint64_t* o) {
        const bool more = accepted < words;
        static const uint64_t nothing[SEND_WORDS] = {};
        model->i_valid = more;
        MODMILL_SEND((more ? i + accepted * SEND_WORDS : nothing));
        offer_random(*model, random++, 0);
        model->clk = 0;
        model->eval();
        const bool in = more && model->i_ready, out = model->o_valid;
        accepted += in;
        if (out) {
            if (o && taken < wanted) MODMILL_TAKE((o + taken * TAKE_WORDS));
            ++taken;
        }
        model->clk = 1;
        model->eval();
        return in || out;
    }

    // A run from the snapshot; returns the cycle in which the answer ended, 0 if it did not end.
    uint64_t run(const uint64_t* i, uint64_t* o) {
        begin();
        uint64_t accepted = 0, taken = 0, end = 0;
        look(nullptr);
        for (uint64_t cycle = 0; cycle < cycles; ++cycle) {
            cycle_of(i, accepted, taken, o);
            if (taken >= wanted && !end) end = cycle + 1;
            look(&counts[cycle]);
        }
        return end;
    }

    // Counts the bits that changed since the last look, by class, and all.
    void look(uint32_t* into) {
        uint8_t* old = before.data();
        uint64_t all = 0;
        for (size_t k = 0; k < classes; ++k) {
            uint64_t count = 0;
            for (const Place& place : watched[k]) {
                const size_t size = place.stride * place.words;
                count += changed(place.data, old, size);
                old += size;
            }
            if (into) into[k * cycles] = static_cast<uint32_t>(count);
            all += count;
        }
        if (into) into[classes * cycles] = static_cast<uint32_t>(all);
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* modmill_begin(Opening* opening) { return new Simulation(*opening); }
EXPORT uint64_t modmill_places(void* simulation) { return static_cast<Simulation*>(simulation)->count(); }
EXPORT uint64_t modmill_bits(void* simulation, uint64_t place) { return static_cast<Simulation*>(simulation)->bits(place); }
EXPORT void modmill_run(void* simulation, const Batch* batch, Moments* sums) {
    static_cast<Simulation*>(simulation)->run(*batch, sums);
}
EXPORT void modmill_look_at(void* simulation, const Batch* batch, uint64_t cycle, uint32_t* into) {
    static_cast<Simulation*>(simulation)->look_at(*batch, cycle, into);
}
EXPORT void modmill_end(void* simulation) { delete static_cast<Simulation*>(simulation); }
