// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Visits every state of an AND-inverter graph; the other half is states.py. A bit is 0, 1 or unknown: two bits of a
// word say whether it can be 1 and whether it can be 0. Many transitions are computed at once, one in each lane.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <vector>

struct Problem {  // the same layout stands in states.py
    uint32_t inputs, latches, gates;
    const uint32_t* next;   // of each latch, a literal: 2 x variable + inverted; variables: 0, inputs, latches, gates
    const uint32_t* left;   // of each gate
    const uint32_t* right;
    uint32_t bad;
    const uint8_t* input;   // how an input moves
    const uint8_t* first;   // state of a latch before the reset: 0, 1, or 2 for unknown
    const uint8_t* flag;    // whether an unknown latch counts as 1
    uint64_t most;          // limit of states
    double seconds;         // limit of processor time
    uint64_t states;        // visited
};

namespace {

enum Moves : uint8_t { UNKNOWN, CHOSEN, RESET };
enum Answer : int { NEVER, PERHAPS, TOO_MANY };

constexpr unsigned PARTS = 4, BITS = 64, LANES = PARTS * BITS;
constexpr unsigned SPLITS = 16;  // most unknown bits that a state is split into
typedef uint64_t Lanes __attribute__((vector_size(8 * PARTS)));
using State = std::vector<uint64_t>;

struct Ternary {
    Lanes one, zero;  // whether it can be
};

Lanes all(bool value) {
    const uint64_t part = value ? ~uint64_t(0) : 0;
    return Lanes{part, part, part, part};
}

// Exchanges rows and columns of 64 words of 64 bits.
void transpose(uint64_t* rows) {
    uint64_t mask = 0x00000000FFFFFFFFULL;
    for (unsigned half = BITS / 2; half; half /= 2, mask ^= mask << half)
        for (unsigned k = 0; k < BITS; k = (k + half + 1) & ~half) {
            const uint64_t moved = (rows[k] >> half ^ rows[k + half]) & mask;
            rows[k] ^= moved << half;
            rows[k + half] ^= moved;
        }
}

class Visited {  // a set of states, each a number of words, in the order in which they came
public:
    explicit Visited(unsigned words) : words(words), places(1 << 16) {}
    uint64_t size() const { return count; }
    const uint64_t* operator[](uint64_t k) const { return &content[k * words]; }
    void add(const uint64_t* state) {
        if (2 * count >= places.size()) grow();
        uint64_t place = hash(state) & (places.size() - 1);
        while (places[place]) {
            if (!std::memcmp((*this)[places[place] - 1], state, 8 * words)) return;
            place = (place + 1) & (places.size() - 1);
        }
        content.insert(content.end(), state, state + words);
        places[place] = ++count;
    }

private:
    unsigned words;
    uint64_t count = 0;
    std::vector<uint64_t> content;
    std::vector<uint32_t> places;  // number of a state + 1
    uint64_t hash(const uint64_t* state) const {
        uint64_t found = 0;
        for (unsigned k = 0; k < words; ++k) {
            found = (found ^ state[k]) * 0x9E3779B97F4A7C15ULL;
            found ^= found >> 29;
        }
        return found;
    }
    void grow() {
        std::vector<uint32_t> larger(2 * places.size());
        for (uint64_t k = 0; k < count; ++k) {
            uint64_t place = hash((*this)[k]) & (larger.size() - 1);
            while (larger[place]) place = (place + 1) & (larger.size() - 1);
            larger[place] = uint32_t(k + 1);
        }
        places.swap(larger);
    }
};

class Search {
public:
    explicit Search(Problem& problem)
        : p(problem), words((2 * p.latches + BITS - 1) / BITS), visited(words),
          values(1 + p.inputs + p.latches + p.gates), before(2 * p.latches), after(LANES * words) {
        for (unsigned k = 0; k < p.inputs; ++k)
            if (p.input[k] == CHOSEN) chosen.push_back(k);
        choices = 1u << chosen.size();
    }

    int run() {
        const clock_t begin = std::clock();
        if (choices > LANES) return TOO_MANY;
        if (!start()) return TOO_MANY;
        for (uint64_t done = 0; done < visited.size();) {
            p.states = visited.size();
            const double passed = double(std::clock() - begin) / CLOCKS_PER_SEC;
            if (visited.size() > p.most || passed > p.seconds) return TOO_MANY;
            const unsigned count = unsigned(std::min<uint64_t>(LANES / choices, visited.size() - done));
            if (step(visited[done], count, false)) return PERHAPS;
            for (unsigned lane = 0; lane < count * choices; ++lane) visited.add(&after[lane * words]);
            done += count;
        }
        return NEVER;
    }

private:
    Problem& p;
    unsigned words;
    Visited visited;
    std::vector<Ternary> values;
    std::vector<unsigned> chosen;
    unsigned choices;
    std::vector<Lanes> before;  // the bits of the states of all lanes
    State after;                // of each lane, one behind the other

    static bool bit(const uint64_t* state, unsigned k) { return state[k / BITS] >> (k % BITS) & 1; }
    static void set(uint64_t* state, unsigned k) { state[k / BITS] |= uint64_t(1) << (k % BITS); }
    static void clear(uint64_t* state, unsigned k) { state[k / BITS] &= ~(uint64_t(1) << (k % BITS)); }
    bool unknown(const uint64_t* state, unsigned k) const { return bit(state, k) && bit(state, p.latches + k); }
    Ternary value(uint32_t literal) const {
        const Ternary found = values[literal >> 1];
        return literal & 1 ? Ternary{found.zero, found.one} : found;
    }

    // The states after the cycle of the reset, with every value of the unknown bits that would never become known.
    bool start() {
        State first(words);
        for (unsigned k = 0; k < p.latches; ++k) {
            if (p.first[k] != 0) set(first.data(), k);
            if (p.first[k] != 1) set(first.data(), p.latches + k);
        }
        step(first.data(), 1, true);
        const State begun = after;
        const std::vector<unsigned> loops = kept(begun.data());
        if (loops.size() > SPLITS) return false;
        for (unsigned lane = 0; lane < choices; ++lane)
            for (uint32_t number = 0; number < 1u << loops.size(); ++number) {
                State known(&begun[lane * words], &begun[lane * words] + words);
                for (unsigned k = 0; k < loops.size(); ++k)
                    if (unknown(&begun[lane * words], loops[k]))
                        clear(known.data(), number >> k & 1 ? p.latches + loops[k] : loops[k]);
                visited.add(known.data());
            }
        return true;
    }

    // Unknown latches that depend on themselves, through other unknown ones.
    std::vector<unsigned> kept(const uint64_t* state) const {
        std::vector<unsigned> latches;
        for (unsigned k = 0; k < p.latches; ++k)
            if (unknown(state, k)) latches.push_back(k);
        const unsigned count = unsigned(latches.size());
        std::vector<std::vector<bool>> behind(values.size(), std::vector<bool>(count));
        for (unsigned k = 0; k < count; ++k) behind[1 + p.inputs + latches[k]][k] = true;
        for (unsigned k = 0; k < p.gates; ++k)
            for (unsigned j = 0; j < count; ++j)
                behind[1 + p.inputs + p.latches + k][j] = behind[p.left[k] >> 1][j] || behind[p.right[k] >> 1][j];
        std::vector<std::vector<bool>> reached;
        for (unsigned latch : latches) reached.push_back(behind[p.next[latch] >> 1]);
        for (unsigned via = 0; via < count; ++via)
            for (unsigned k = 0; k < count; ++k)
                if (reached[k][via])
                    for (unsigned j = 0; j < count; ++j)
                        if (reached[via][j]) reached[k][j] = true;
        std::vector<unsigned> found;
        for (unsigned k = 0; k < count; ++k)
            if (reached[k][k]) found.push_back(latches[k]);
        return found;
    }

    // All transitions from ``count`` states; whether the bad output can be 1 in one of them.
    bool step(const uint64_t* states, unsigned count, bool reset) {
        values[0] = {all(false), all(true)};
        for (unsigned k = 0; k < p.inputs; ++k) {
            const bool fixed = p.input[k] == RESET;
            values[1 + k] = {all(!fixed || reset), all(!fixed || !reset)};
        }
        for (unsigned k = 0; k < chosen.size(); ++k) {
            Lanes one = all(false);
            for (unsigned lane = 0; lane < LANES; ++lane) one[lane / BITS] |= uint64_t(lane >> k & 1) << (lane % BITS);
            values[1 + chosen[k]] = {one, ~one};
        }
        const unsigned used = count * choices, bits = 2 * p.latches;
        uint64_t rows[BITS];
        for (unsigned part = 0; part < PARTS; ++part)
            for (unsigned word = 0; word < words; ++word) {
                for (unsigned k = 0; k < BITS; ++k) {
                    const unsigned lane = BITS * part + k;
                    rows[k] = lane < used ? states[uint64_t(lane / choices) * words + word] : 0;
                }
                transpose(rows);
                for (unsigned k = 0; k < BITS && BITS * word + k < bits; ++k) before[BITS * word + k][part] = rows[k];
            }
        for (unsigned k = 0; k < p.latches; ++k) values[1 + p.inputs + k] = {before[k], before[p.latches + k]};
        for (unsigned k = 0; k < p.gates; ++k) {
            const Ternary a = value(p.left[k]), b = value(p.right[k]);
            values[1 + p.inputs + p.latches + k] = {a.one & b.one, a.zero | b.zero};
        }
        for (unsigned k = 0; k < p.latches; ++k) {
            Ternary found = value(p.next[k]);
            if (p.flag[k]) found.zero &= ~found.one;
            before[k] = found.one;
            before[p.latches + k] = found.zero;
        }
        for (unsigned part = 0; part < PARTS; ++part)
            for (unsigned word = 0; word < words; ++word) {
                for (unsigned k = 0; k < BITS; ++k) rows[k] = BITS * word + k < bits ? before[BITS * word + k][part] : 0;
                transpose(rows);
                for (unsigned k = 0; k < BITS; ++k) after[(BITS * part + k) * words + word] = rows[k];
            }
        const Lanes bad = value(p.bad).one;
        for (unsigned lane = 0; lane < used; ++lane)
            if (bad[lane / BITS] >> (lane % BITS) & 1) return true;
        return false;
    }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int modmill_states(Problem* problem) {
    return Search(*problem).run();
}
