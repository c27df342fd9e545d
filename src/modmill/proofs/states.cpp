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
    uint8_t* trace;         // the values of the chosen inputs, cycle by cycle, with which the output may be 1
    uint32_t room;          // for this number of cycles
    uint32_t length;        // cycles of the trace
};

namespace {

enum Moves : uint8_t { UNKNOWN, CHOSEN, RESET };
enum Answer : int { NEVER, PERHAPS, TOO_MANY };

constexpr unsigned PARTS = 4, BITS = 64, LANES = PARTS * BITS;
constexpr uint32_t NONE = ~uint32_t(0);
constexpr unsigned SPLITS = 20;  // most unknown bits that a state is split into
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
    uint64_t before(uint64_t k) const { return parents[k]; }
    void add(const uint64_t* state, uint64_t parent) {
        if (2 * count >= places.size()) grow();
        uint64_t place = hash(state) & (places.size() - 1);
        while (places[place]) {
            if (!std::memcmp((*this)[places[place] - 1], state, 8 * words)) return;
            place = (place + 1) & (places.size() - 1);
        }
        content.insert(content.end(), state, state + words);
        parents.push_back(uint32_t(parent));
        places[place] = ++count;
    }

private:
    unsigned words;
    uint64_t count = 0;
    std::vector<uint64_t> content;
    std::vector<uint32_t> parents;  // the state from which it came
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

    // Begins with all bits unknown that the reset does not set. If the bad output can be 1 because of some of them, their
    // values are tried one by one, and the search begins again.
    int run() {
        const clock_t begin = std::clock();
        if (choices > LANES) return TOO_MANY;
        while (split.size() <= SPLITS) {
            visited = Visited(words);
            start();
            bool reached = false;
            for (uint64_t done = 0; done < visited.size() && !reached;) {
                p.states = visited.size();
                const double passed = double(std::clock() - begin) / CLOCKS_PER_SEC;
                if (visited.size() > p.most || passed > p.seconds) return TOO_MANY;
                const unsigned count = unsigned(std::min<uint64_t>(LANES / choices, visited.size() - done));
                reached = step(visited[done], count, false);
                const unsigned at = wrong;
                if (reached && !refine(done + wrong / choices)) {
                    trace(done + at / choices, at % choices);
                    return PERHAPS;
                }
                for (unsigned lane = 0; lane < count * choices && !reached; ++lane)
                    visited.add(&after[lane * words], done + lane / choices);
                done += count;
            }
            if (!reached) return NEVER;
        }
        return TOO_MANY;
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
    unsigned wrong = 0;         // a lane in which the bad output can be 1
    std::vector<unsigned> split;

    static bool bit(const uint64_t* state, unsigned k) { return state[k / BITS] >> (k % BITS) & 1; }
    static void set(uint64_t* state, unsigned k) { state[k / BITS] |= uint64_t(1) << (k % BITS); }
    static void clear(uint64_t* state, unsigned k) { state[k / BITS] &= ~(uint64_t(1) << (k % BITS)); }
    bool unknown(const uint64_t* state, unsigned k) const { return bit(state, k) && bit(state, p.latches + k); }
    Ternary value(uint32_t literal) const {
        const Ternary found = values[literal >> 1];
        return literal & 1 ? Ternary{found.zero, found.one} : found;
    }

    // The states after the cycle of the reset, with every value of the bits to be split.
    void start() {
        State first(words);
        for (unsigned k = 0; k < p.latches; ++k) {
            if (p.first[k] != 0) set(first.data(), k);
            if (p.first[k] != 1) set(first.data(), p.latches + k);
        }
        step(first.data(), 1, true);
        const State begun = after;
        for (unsigned lane = 0; lane < choices; ++lane)
            for (uint32_t number = 0; number < 1u << split.size(); ++number) {
                State known(&begun[lane * words], &begun[lane * words] + words);
                for (unsigned k = 0; k < split.size(); ++k)
                    if (unknown(&begun[lane * words], split[k]))
                        clear(known.data(), number >> k & 1 ? p.latches + split[k] : split[k]);
                visited.add(known.data(), NONE);
            }
    }

    // Writes down the inputs on the way to a state, and those in it.
    void trace(uint64_t at, unsigned last) {
        std::vector<uint8_t> found{uint8_t(last)};
        for (uint64_t from = visited.before(at); from != NONE; at = from, from = visited.before(at)) {
            step(visited[from], 1, false);
            unsigned lane = 0;
            while (lane + 1 < choices && std::memcmp(&after[lane * words], visited[at], 8 * words)) ++lane;
            found.push_back(uint8_t(lane));
        }
        p.length = uint32_t(std::min<size_t>(found.size(), p.room));
        std::copy(found.rbegin(), found.rbegin() + p.length, p.trace);
    }

    bool may(uint32_t literal) const { return value(literal).one[wrong / BITS] >> (wrong % BITS) & 1; }

    // Latches before the cycle in ``wrong`` because of whose values some literals can be 1: flags, and unknown ones.
    std::vector<uint32_t> reasons(std::vector<uint32_t> todo) const {
        std::vector<bool> seen(2 * values.size());
        std::vector<uint32_t> found;
        while (!todo.empty()) {
            const uint32_t literal = todo.back(), net = literal >> 1;
            todo.pop_back();
            if (seen[literal]) continue;
            seen[literal] = true;
            if (net > p.inputs + p.latches) {
                const unsigned gate = net - 1 - p.inputs - p.latches;
                const uint32_t left = p.left[gate], right = p.right[gate];
                if (!(literal & 1)) {
                    todo.push_back(left);
                    todo.push_back(right);
                } else {  // one input that can be 0: if possible one that is
                    const bool first = may(left ^ 1) && (!may(left) || !may(right ^ 1) || may(right));
                    todo.push_back((first ? left : right) ^ 1);
                }
            } else if (net > p.inputs) {
                const unsigned latch = net - 1 - p.inputs;
                if (p.flag[latch] ? !(literal & 1) : may(literal ^ 1)) found.push_back(2 * latch | (literal & 1));
            }
        }
        return found;
    }

    // Adds to the bits to be split those unknown at the start because of which the bad output can be 1 in a state's lane
    // ``wrong``; whether there are new ones.
    bool refine(uint64_t at) {
        std::vector<uint32_t> found = reasons({p.bad});
        for (uint64_t from = visited.before(at); from != NONE; at = from, from = visited.before(at)) {
            step(visited[from], 1, false);
            for (wrong = 0; wrong < choices; ++wrong)
                if (!std::memcmp(&after[wrong * words], visited[at], 8 * words)) break;
            std::vector<uint32_t> next;
            for (uint32_t each : found) next.push_back(p.next[each >> 1] ^ (each & 1));
            found = reasons(next);
        }
        const auto before = split.size();
        for (uint32_t each : found)
            if (unknown(visited[at], each >> 1) && std::find(split.begin(), split.end(), each >> 1) == split.end())
                split.push_back(each >> 1);
        return split.size() > before;
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
            if (bad[lane / BITS] >> (lane % BITS) & 1) {
                wrong = lane;
                return true;
            }
        return false;
    }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int modmill_states(Problem* problem) {
    return Search(*problem).run();
}
