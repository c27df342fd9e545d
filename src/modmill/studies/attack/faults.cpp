// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Runs an engine once without a fault, then again and again with one fault each; the other half is faults.py, which
// defines MODMILL_ALARM, the output that reports a fault. state.cpp comes before.
//
// Everything that the model remembers lies in one structure, so a copy of it is a snapshot. The run without a fault
// leaves one every few cycles, and notes for each word of a memory whether a port had its address before the next one.
// A run with a fault begins with the last snapshot before its fault, and ends early when all registers, all memories and
// the position in both streams are those of a snapshot again. If they are, but for some words of memories, it goes on
// from the next snapshot after which a port has the address of one of these words; if there is none, it ends.

struct Operation {  // the same layout stands in faults.py
    Start start;
    uint64_t words;
    const uint64_t* i;
    uint64_t wanted;
    uint64_t patience;   // cycles without a word after which a user of the engine gives up
    uint64_t snapshots;  // at most
    uint64_t jumps;      // whether snapshots may be left out
    uint64_t* o;
    uint64_t* last;
    uint64_t taken;
    uint64_t cycles;
};

struct Fault {  // the same layout stands in faults.py
    uint64_t kind, place, word, bit, cycle;
    uint64_t outcome;
    uint64_t end;  // cycle in which the outcome was known
};

namespace {

enum Kind : uint64_t { FLIP, STUCK_AT_0, STUCK_AT_1, SKIP };
enum Outcome : uint64_t { NO_EFFECT, DETECTED, WITHHELD, RELEASED };

constexpr uint64_t DRAIN = 64;        // cycles after the answer, or after an alarm, in which no wrong word may leave
constexpr uint64_t LOOP_EVERY = 4096; // cycles between two searches for a state that comes back
constexpr uint64_t LOOP_LENGTH = 256; // cycles of each search

struct Position {  // in both streams
    uint64_t accepted = 0, taken = 0, event = 0, answered = 0, alarmed = 0;
    bool presenting = false, wrong = false;
    bool beside(const Position& other) const { return accepted == other.accepted && taken == other.taken; }
};

struct Snapshot {
    std::vector<uint8_t> model;
    Position at;
    std::vector<bool> touched;  // words of memories, of which a port has the address before the next snapshot
};

struct Port {  // the address of one
    size_t place;
    uint64_t first;
    const uint8_t* data;
    size_t size;
    uint64_t word() const {
        uint64_t address = 0;
        std::memcpy(&address, data, size);
        return address - first;
    }
};

struct Word {  // of a memory, with its contents
    size_t place, number;
    std::vector<uint8_t> contents;
};

class Simulation {
public:
    explicit Simulation(Operation& operation) : op(operation) {
        context.randReset(2);  // registers start from random values
        context.randSeed(static_cast<int>(seeded(op.start.seed) & 0x7fffffff));
        model = std::make_unique<Vmodel>(&context);
        places = places_of(*model);
        find_ports();
        model->i_valid = model->o_ready = 0;
        model->i_data = 0;
        model->rst = 1;
        for (uint64_t k = std::max(op.start.reset, op.start.power_up); k; --k) {
            low();
            high();
        }
        model->rst = 0;
        model->o_ready = 1;
        stride = 1;
        for (uint64_t cycle = 0;; ++cycle) {
            if (cycle % stride == 0) keep();
            if (ended(cycle)) {
                op.cycles = cycle;
                break;
            }
            step(cycle, true);
        }
        op.taken = at.taken;
    }
    ~Simulation() { model->final(); }

    size_t size(size_t place) const { return places[place].words; }
    size_t bytes(size_t place) const { return places[place].stride; }
    size_t count() const { return places.size(); }

    void run(Fault& fault) {
        const uint64_t from = fault.cycle / stride;
        load(snapshots[from]);
        uint64_t cycle = from * stride;
        for (; cycle < fault.cycle; ++cycle) step(cycle, false);
        Place& place = places[fault.place];
        uint8_t* const byte = place.data + fault.word * place.stride + fault.bit / 8;
        const uint8_t mask = static_cast<uint8_t>(1u << fault.bit % 8);
        if (fault.kind == FLIP) {
            *byte ^= mask;
            settle();
        }
        const bool stuck = fault.kind == STUCK_AT_0 || fault.kind == STUCK_AT_1;
        std::vector<uint8_t> before, looped;
        Position loop;
        bool done = fault.kind == FLIP;  // a skip waits for the first clock edge that would change something
        for (;; ++cycle) {
            if (stuck && bool(*byte & mask) != (fault.kind == STUCK_AT_1)) {
                *byte ^= mask;
                settle();
            }
            if (ended(cycle)) {
                fault.outcome = at.wrong ? RELEASED : at.alarmed ? DETECTED : at.taken < op.wanted ? WITHHELD : NO_EFFECT;
                break;
            }
            std::vector<Word> wrong;
            const uint64_t number = cycle / stride;
            if ((done || (stuck && known[fault.place])) && cycle % stride == 0 && number < snapshots.size() &&
                same(number, wrong)) {
                if (stuck) wrong.push_back(word_of(fault.place, fault.word));
                const uint64_t next = touched(number, wrong);
                if (next == snapshots.size()) {
                    fault.outcome = NO_EFFECT;
                    break;
                }
                if (next > number) {
                    load(snapshots[next]);
                    cycle = next * stride;
                    for (const Word& word : wrong) std::copy(word.contents.begin(), word.contents.end(), data_of(word));
                    settle();
                }
            }
            if (cycle > op.cycles && !at.alarmed) {  // a machine that repeats its states sends nothing any more
                if (cycle % LOOP_EVERY == 0) {
                    state(looped);
                    loop = at;
                } else if (!looped.empty() && cycle % LOOP_EVERY < LOOP_LENGTH && at.beside(loop)) {
                    state(before);
                    if (before == looped) {
                        fault.outcome = at.taken < op.wanted ? WITHHELD : NO_EFFECT;
                        break;
                    }
                }
            }
            if (done || stuck) {
                step(cycle, false);
                continue;
            }
            const size_t size = place.stride * place.words;
            before.assign(place.data, place.data + size);
            step(cycle, false);
            if (!std::memcmp(before.data(), place.data, size)) continue;
            std::copy(before.begin(), before.end(), place.data);
            settle();
            done = true;
        }
        fault.end = cycle;
    }

private:
    Operation& op;
    VerilatedContext context;
    std::unique_ptr<Vmodel> model;
    std::vector<Place> places;
    std::vector<Snapshot> snapshots;
    std::vector<Port> ports;
    std::vector<bool> known;    // places whose ports are all known
    std::vector<size_t> begin;  // index of a place's first word in Snapshot::touched
    Position at;
    uint64_t stride = 1;

    void find_ports() {
#define PORT(place, first, name) \
    ports.push_back({place, first, reinterpret_cast<const uint8_t*>(&model->rootp->name), sizeof model->rootp->name});
        MODMILL_PORTS
#undef PORT
        known.assign(places.size(), false);
        for (const Port& port : ports) known[port.place] = op.jumps;
        begin.assign(1, 0);
        for (const Place& place : places) begin.push_back(begin.back() + place.words);
    }

    void low() {
        model->clk = 0;
        model->eval();
    }
    void high() {
        model->clk = 1;
        model->eval();
    }
    void settle() { Vmodel___024root___eval_settle(model->rootp); }

    // One cycle; the run without a fault writes the words down that the others must send.
    void step(uint64_t cycle, bool first) {
        if (!at.presenting && cycle >= op.start.first && at.accepted < op.words) at.presenting = true;
        model->i_valid = at.presenting;
        model->i_data = at.presenting ? op.i[at.accepted] : 0;
        offer_random(*model, op.start.seed + cycle, 0);
        low();
        if (first)
            for (const Port& port : ports)
                if (port.word() < places[port.place].words) snapshots.back().touched[begin[port.place] + port.word()] = true;
        if (model->i_valid && model->i_ready) {
            ++at.accepted;
            at.presenting = false;
            at.event = cycle;
        }
        if (model->o_valid && !(MODMILL_ALARM && model->o_data == 0)) {  // a word 0 beside an alarm is no result
            if (at.taken == op.wanted || at.wrong) {
                at.wrong = true;
            } else if (first) {
                op.o[at.taken] = model->o_data;
                op.last[at.taken++] = model->o_last;
            } else if (op.o[at.taken] == model->o_data && op.last[at.taken] == model->o_last) {
                ++at.taken;
            } else {
                at.wrong = true;
            }
            at.event = cycle;
        }
        if (at.taken == op.wanted && !at.answered) at.answered = cycle;
        if (MODMILL_ALARM && !at.alarmed) at.alarmed = cycle + 1;
        high();
    }

    bool ended(uint64_t cycle) const {
        return at.wrong || (at.answered && cycle > at.answered + DRAIN) || (at.alarmed && cycle > at.alarmed + DRAIN) ||
               cycle > at.event + op.patience;
    }

    // Keeps a snapshot; if there are too many, every other one is dropped.
    void keep() {
        const uint8_t* const root = reinterpret_cast<const uint8_t*>(model->rootp);
        snapshots.push_back({std::vector<uint8_t>(root, root + sizeof *model->rootp), at, std::vector<bool>(begin.back())});
        if (snapshots.size() < op.snapshots) return;
        for (size_t k = 0; 2 * k < snapshots.size(); ++k) {
            if (k) snapshots[k] = std::move(snapshots[2 * k]);
            if (2 * k + 1 == snapshots.size()) continue;
            const std::vector<bool>& dropped = snapshots[2 * k + 1].touched;
            for (size_t word = 0; word < dropped.size(); ++word)
                if (dropped[word]) snapshots[k].touched[word] = true;
        }
        snapshots.resize((snapshots.size() + 1) / 2);
        stride *= 2;
    }
    void load(const Snapshot& kept) {
        std::copy(kept.model.begin(), kept.model.end(), reinterpret_cast<uint8_t*>(model->rootp));
        at = kept.at;
    }
    uint8_t* data_of(const Word& word) const { return places[word.place].data + word.number * places[word.place].stride; }
    Word word_of(size_t place, size_t number) const {
        Word word{place, number, {}};
        word.contents.assign(data_of(word), data_of(word) + places[place].stride);
        return word;
    }

    // Whether the state is that of a snapshot, but for ``wrong`` words.
    bool same(uint64_t number, std::vector<Word>& wrong) const {
        const Snapshot& kept = snapshots[number];
        const uint8_t* const root = reinterpret_cast<const uint8_t*>(model->rootp);
        if (!at.beside(kept.at) || at.alarmed != kept.at.alarmed) return false;
        for (size_t k = 0; k < places.size(); ++k) {
            const Place& place = places[k];
            const uint8_t* const before = kept.model.data() + (place.data - root);
            if (!std::memcmp(place.data, before, place.stride * place.words)) continue;
            if (!known[k]) return false;
            for (size_t word = 0; word < place.words; ++word)
                if (std::memcmp(place.data + word * place.stride, before + word * place.stride, place.stride))
                    wrong.push_back(word_of(k, word));
        }
        return true;
    }
    // The first snapshot from this one on, before whose successor a port has the address of a word; their number if none.
    uint64_t touched(uint64_t number, const std::vector<Word>& words) const {
        const auto of = [&](const Word& word) { return snapshots[number].touched[begin[word.place] + word.number]; };
        while (number < snapshots.size() && std::none_of(words.begin(), words.end(), of)) ++number;
        return number;
    }
    void state(std::vector<uint8_t>& into) const {
        into.clear();
        for (const Place& place : places) into.insert(into.end(), place.data, place.data + place.stride * place.words);
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* modmill_begin(Operation* operation) { return new Simulation(*operation); }
EXPORT uint64_t modmill_places(void* simulation) { return static_cast<Simulation*>(simulation)->count(); }
EXPORT uint64_t modmill_words(void* simulation, uint64_t place) { return static_cast<Simulation*>(simulation)->size(place); }
EXPORT uint64_t modmill_bytes(void* simulation, uint64_t place) { return static_cast<Simulation*>(simulation)->bytes(place); }
EXPORT void modmill_run(void* simulation, Fault* faults, uint64_t count) {
    for (uint64_t k = 0; k < count; ++k) static_cast<Simulation*>(simulation)->run(faults[k]);
}
EXPORT void modmill_end(void* simulation) { delete static_cast<Simulation*>(simulation); }
