// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Drives an engine with two streams of words; the other half is words.py, which defines MODMILL_WORD, and
// MODMILL_RANDOM for an engine with a port for random words.

namespace {

constexpr uint64_t BURST_MASK = 15;  // a pause in four lasts 2 to 17 cycles

enum Fault { VALID_DROPPED, WORD_CHANGED, WORD_TOO_MANY, VALID_AFTER_RESET, FAULTS };

}  // namespace

struct Job {  // the same layout stands in words.py
    Start start;
    uint64_t words;
    const uint64_t* i;
    uint64_t wanted;
    uint64_t* o;
    uint64_t* accepted;
    uint64_t* valid;
    uint64_t* last;
    uint32_t gap;
    uint32_t stall;
    uint64_t source;  // of random words
    uint64_t timeout;
    uint64_t drain;
    uint64_t accepted_count;
    uint64_t taken_count;
    uint64_t cycles;
    uint64_t timed_out;
    uint64_t faults[FAULTS];
    uint64_t first[FAULTS];
};

namespace {

class Pauses {
public:
    Pauses(uint32_t of_2_32, uint64_t seed) : chance(of_2_32), random(seed) {}
    bool next() {
        if (left) {
            --left;
            return true;
        }
        if (!chance || static_cast<uint32_t>(random()) >= chance) return false;
        const uint64_t drawn = random();
        left = drawn & 3 ? 0 : 1 + (drawn >> 2 & BURST_MASK);
        return true;
    }
    uint64_t noise() { return random(); }

private:
    uint32_t chance;
    uint64_t left = 0;
    std::mt19937_64 random;
};

// A source of random words: fresh ones with pauses, none, always the same one, or the same one every second time.
class Randomness {
public:
#if defined(MODMILL_RANDOM)
    Randomness(CData& valid, CData& ready, IData& data) : valid(valid), ready(ready), data(data) {}
    void start(const Job& job) {
        source = job.source;
        pauses = Pauses(job.gap, job.start.seed + 2);
        stuck = static_cast<IData>(pauses.noise());
        valid = 0;
    }
    void drive() {
        if (presenting) return;
        valid = presenting = source != MISSING && !pauses.next();
        const bool same = presenting && (source == STUCK || (source == BIASED && ++count % 2));
        data = same ? stuck : static_cast<IData>(pauses.noise());
    }
    void sample() { presenting = presenting && !ready; }

private:
    CData &valid, &ready;
    IData& data;
    uint64_t source = FRESH, count = 0;
    IData stuck = 0;
    bool presenting = false;
    Pauses pauses{0, 3};
#else
    void start(const Job&) {}
    void drive() {}
    void sample() {}
#endif
};

template <class Word> class Bench {
public:
    Bench(CData& i_valid, CData& i_ready, Word& i_data, CData& o_valid, CData& o_ready, Word& o_data,
          CData& o_last, uint64_t mask, Randomness source)
        : i_valid(i_valid), i_ready(i_ready), i_data(i_data), o_valid(o_valid), o_ready(o_ready), o_data(o_data),
          o_last(o_last), mask(mask), randomness(source) {}

    void disturb(std::mt19937_64& noise) {
        i_valid = noise() & 1;
        o_ready = noise() & 1;
        i_data = static_cast<Word>(noise() & mask);
    }

    void start(Job* new_job) {
        job = new_job;
        job->accepted_count = job->taken_count = job->cycles = 0;
        producer = Pauses(job->gap, job->start.seed);
        consumer = Pauses(job->stall, job->start.seed + 1);
        randomness.start(*job);
        i_valid = 0;
        o_ready = 0;
    }

    bool done() const { return finished; }

    void drive(uint64_t cycle) {
        if (!presenting) {
            presenting = cycle >= job->start.first && job->accepted_count < job->words && !producer.next();
            i_valid = presenting;
            i_data = static_cast<Word>(presenting ? job->i[job->accepted_count] : producer.noise() & mask);
        }
        o_ready = !consumer.next();
        randomness.drive();
    }

    void sample(uint64_t cycle) {
        randomness.sample();
        if (cycle == 0 && o_valid) fault(VALID_AFTER_RESET, cycle);
        if (i_valid && i_ready) {
            job->accepted[job->accepted_count++] = cycle;
            presenting = false;
            last_event = cycle;
        }
        if (waiting && !o_valid) fault(VALID_DROPPED, cycle);
        if (waiting && o_valid && (o_data != held || o_last != held_last)) fault(WORD_CHANGED, cycle);
        if (o_valid && job->taken_count == job->wanted) {  // no event: a core that always shows a word would never end
            fault(WORD_TOO_MANY, cycle);
        } else if (o_valid) {
            last_event = cycle;
            if (!waiting) job->valid[job->taken_count] = cycle;
            job->last[job->taken_count] = o_last;
            if (o_ready) job->o[job->taken_count++] = o_data;
        }
        held = o_data;
        held_last = o_last;
        waiting = o_valid && !o_ready;
        if (job->taken_count == job->wanted && job->accepted_count == job->words) {
            if (!job->cycles) job->cycles = cycle + 1;
            finished = cycle >= job->cycles + job->drain;
        } else if (cycle - last_event > job->timeout) {
            job->cycles = cycle + 1;
            job->timed_out = 1;
            finished = true;
        }
    }

private:
    void fault(Fault kind, uint64_t cycle) {
        if (!job->faults[kind]++) job->first[kind] = cycle;
    }

    CData &i_valid, &i_ready;
    Word& i_data;
    CData &o_valid, &o_ready;
    Word& o_data;
    CData& o_last;
    uint64_t mask;
    Randomness randomness;
    Job* job = nullptr;
    Pauses producer{0, 1}, consumer{0, 2};
    bool presenting = false, waiting = false, finished = false;
    Word held = 0;
    CData held_last = 0;
    uint64_t last_event = 0;
};

using TheBench = Bench<std::remove_reference_t<decltype((MODMILL_WORD))>>;

}  // namespace
