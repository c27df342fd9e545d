// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Drives a core; the other half is simulate.py, which defines K_WORDS, A_WORDS, B_WORDS and R_WORDS, the masks *_LAST of
// their last words, and the types MODMILL_K and so on.

namespace {

constexpr uint32_t BURST_MASK = 15;  // pauses in bursts last 2 to 17 cycles
constexpr uint32_t HOLD_MASK = 7;    // a consumer that waits for valid then holds it for 1 to 8 cycles
constexpr uint64_t DRAIN_CYCLES = 16;

enum Fault {
    VALID_DROPPED, RESULT_CHANGED, RESULT_WITHOUT_OPERAND, VALID_AFTER_RESET, OPERANDS_BEFORE_MODULUS,
    MODULUS_BEFORE_RESULTS, ALARM_HIGH, ALARM_FELL, FAULTS
};

struct Random {
    uint64_t state;
    uint32_t next() {  // xorshift64*, Vigna 2016
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return static_cast<uint32_t>((state * 0x2545F4914F6CDD1DULL) >> 32);
    }
    bool chance(uint32_t of_2_32) { return of_2_32 && next() < of_2_32; }
    uint32_t burst() { return next() & 3 ? 1 : 2 + (next() & BURST_MASK); }
};

template <class Port> void put(Port& port, const uint32_t* words, int count) {
    if constexpr (std::is_integral_v<Port>) {
        uint64_t value = words[0];
        if (count > 1) value |= static_cast<uint64_t>(words[1]) << 32;
        port = static_cast<Port>(value);
    } else {
        std::memcpy(port.data(), words, sizeof(uint32_t) * count);
    }
}

template <class Port> void get(const Port& port, uint32_t* words, int count) {
    if constexpr (std::is_integral_v<Port>) {
        words[0] = static_cast<uint32_t>(port);
        if (count > 1) words[1] = static_cast<uint32_t>(static_cast<uint64_t>(port) >> 32);
    } else {
        std::memcpy(words, port.data(), sizeof(uint32_t) * count);
    }
}

}  // namespace

struct Job {  // the same layout stands in simulate.py
    Start start;
    uint64_t operands;
    const uint32_t* a;
    const uint32_t* b;
    uint64_t words;          // of stream k
    const uint32_t* k;
    const uint64_t* before;  // the operands that each word must precede
    uint32_t gap;
    uint32_t stall;
    uint32_t hold;  // cycles of a stall at most; 0: bursts
    uint64_t timeout;
    uint32_t* r;
    uint64_t* offered;
    uint64_t* accepted;
    uint64_t* valid;
    uint64_t* taken;
    uint64_t* loaded;
    uint64_t loaded_count;
    uint64_t accepted_count;
    uint64_t valid_count;
    uint64_t taken_count;
    uint64_t cycles;
    uint64_t timed_out;
    uint64_t faults[FAULTS];
    uint64_t first[FAULTS];
};

namespace {

template <class K, class A, class B, class R> class Bench {
public:
    Bench(CData& k_valid, CData& k_ready, K& k_m, CData& i_valid, CData& i_ready, A& i_a, B& i_b, CData& o_valid,
          CData& o_ready, R& o_r, CData& o_alarm)
        : k_valid(k_valid), k_ready(k_ready), k_m(k_m), i_valid(i_valid), i_ready(i_ready), i_a(i_a), i_b(i_b),
          o_valid(o_valid), o_ready(o_ready), o_r(o_r), o_alarm(o_alarm) {}

    void disturb(std::mt19937_64& noise) {
        random.state = noise() | 1;
        withdraw();
        put_noise(k_m);
        i_valid = noise() & 1;
        k_valid = noise() & 1;
        o_ready = noise() & 1;
    }

    void start(Job* new_job) {
        job = new_job;
        job->loaded_count = job->accepted_count = job->valid_count = job->taken_count = job->cycles = 0;
        random.state = seeded(job->start.seed);
        withdraw();
        withdraw_word();
        o_ready = 0;
    }

    bool done() const { return finished; }

    void drive(uint64_t cycle) {
        drive_modulus(cycle);
        drive_producer(cycle);
        drive_consumer();
    }

    void sample(uint64_t cycle) {
        if (cycle == 0 && o_valid) fault(VALID_AFTER_RESET, cycle);
        if (o_alarm) fault(ALARM_HIGH, cycle);
        if (alarmed && !o_alarm) fault(ALARM_FELL, cycle);
        alarmed = o_alarm;
        const uint64_t offered = job->accepted_count + (i_valid ? 1 : 0);
        if (k_valid && k_ready) {
            if (job->taken_count != job->accepted_count) fault(MODULUS_BEFORE_RESULTS, cycle);
            job->loaded[job->loaded_count++] = cycle;
            offering_word = false;
            quiet = 0;
        }
        if (i_valid && i_ready) {
            if (word_is_due(k_valid && k_ready)) fault(OPERANDS_BEFORE_MODULUS, cycle);
            job->accepted[job->accepted_count++] = cycle;
            presenting = decided = false;
            quiet = 0;
        }
        if (waiting && !o_valid) fault(VALID_DROPPED, cycle);
        if (o_valid) sample_result(cycle, offered);
        waiting = o_valid && !o_ready;
        if (job->taken_count == job->operands) {
            if (!draining) {
                draining = true;
                job->cycles = cycle + 1;
                drained_at = cycle + DRAIN_CYCLES + longest;
            }
            if (cycle >= drained_at) finished = true;
        } else if (!waiting && ++quiet > job->timeout) {  // while a result waits it is the consumer's turn
            job->cycles = cycle + 1;
            job->timed_out = 1;
            finished = true;
        }
    }

private:
    void sample_result(uint64_t cycle, uint64_t offered) {
        uint32_t words[R_WORDS] = {};
        get(o_r, words, R_WORDS);
        if (waiting && std::memcmp(words, held, sizeof words)) fault(RESULT_CHANGED, cycle);
        std::memcpy(held, words, sizeof words);
        const uint64_t known = o_ready ? job->accepted_count : offered;
        if (job->taken_count >= known || job->taken_count >= job->operands) {
            fault(RESULT_WITHOUT_OPERAND, cycle);
            return;
        }
        const uint64_t k = job->taken_count;
        if (job->valid_count == k) {
            job->valid[job->valid_count++] = cycle;
            quiet = 0;
            const uint64_t from = k < job->accepted_count ? job->accepted[k] : cycle;
            if (cycle - from > longest) longest = cycle - from;
        }
        if (o_ready) {
            std::memcpy(job->r + k * R_WORDS, words, sizeof words);
            job->taken[job->taken_count++] = cycle;
            quiet = 0;
        }
    }

    // Whether a word of the modulus must come before the next operands; ``just``: one came in this cycle.
    bool word_is_due(bool just = false) const {
        return just || (job->loaded_count < job->words && job->before[job->loaded_count] <= job->accepted_count);
    }

    // Operands are offered beside the words: the core must not take them before the last.
    void drive_modulus(uint64_t cycle) {
        if (offering_word) return;
        if (cycle < job->start.first || !word_is_due()) {
            if (k_valid) withdraw_word();
            return;
        }
        const uint64_t next = job->loaded_count;
        if (word_pause == NOT_DECIDED) {
            const bool first = next == 0 || job->before[next - 1] != job->before[next];
            word_pause = !first && random.chance(job->gap) ? random.burst() : 0;
        }
        if (word_pause) {
            --word_pause;
            withdraw_word();
            return;
        }
        put(k_m, job->k + next * K_WORDS, K_WORDS);
        k_valid = 1;
        offering_word = true;
        word_pause = NOT_DECIDED;
    }

    void drive_producer(uint64_t cycle) {
        if (presenting) return;
        if (cycle < job->start.first || job->accepted_count == job->operands) {
            if (i_valid || cycle < job->start.first) withdraw();
            return;
        }
        if (!decided) {
            decided = true;
            pause = random.chance(job->gap) ? random.burst() : 0;
        }
        if (pause) {
            --pause;
            withdraw();
            return;
        }
        put(i_a, job->a + job->accepted_count * A_WORDS, A_WORDS);
        put(i_b, job->b + job->accepted_count * B_WORDS, B_WORDS);
        i_valid = 1;
        job->offered[job->accepted_count] = cycle;
        presenting = true;
    }

    void drive_consumer() {
        if (draining) {
            o_ready = 1;
            return;
        }
        if (!stalled && random.chance(job->stall)) {
            if (job->hold) {
                stalled = 1 + random.next() % job->hold;
            } else if (random.next() & 3) {
                stalled = random.burst();
            } else {
                stalled = 1 + (random.next() & HOLD_MASK);
                until_valid = true;
            }
        }
        if (until_valid && waiting) until_valid = false;
        o_ready = !stalled;
        if (stalled && !until_valid) --stalled;
    }

    void withdraw() {  // operands are noise unless valid
        uint32_t noise[A_WORDS > B_WORDS ? A_WORDS : B_WORDS];
        for (uint32_t& word : noise) word = random.next();
        noise[A_WORDS - 1] &= A_LAST;
        put(i_a, noise, A_WORDS);
        for (uint32_t& word : noise) word = random.next();
        noise[B_WORDS - 1] &= B_LAST;
        put(i_b, noise, B_WORDS);
        i_valid = 0;
    }

    void withdraw_word() {
        if (job->words) put_noise(k_m);
        k_valid = 0;
    }

    void put_noise(K& port) {
        uint32_t noise[K_WORDS];
        for (uint32_t& word : noise) word = random.next();
        noise[K_WORDS - 1] &= K_LAST;
        put(port, noise, K_WORDS);
    }

    void fault(Fault kind, uint64_t cycle) {
        if (!job->faults[kind]++) job->first[kind] = cycle;
    }

    static constexpr uint32_t NOT_DECIDED = 0xFFFFFFFF;
    CData &k_valid, &k_ready;
    K& k_m;
    CData &i_valid, &i_ready;
    A& i_a;
    B& i_b;
    CData &o_valid, &o_ready;
    R& o_r;
    CData& o_alarm;
    Job* job = nullptr;
    Random random{1};
    uint32_t pause = 0, stalled = 0, word_pause = NOT_DECIDED;
    bool offering_word = false;
    bool presenting = false, decided = false, until_valid = false;
    bool waiting = false, draining = false, finished = false, alarmed = false;
    uint32_t held[R_WORDS] = {};
    uint64_t quiet = 0, longest = 0, drained_at = 0;
};

uint32_t no_operand;            // stands for i_b of a core with one operand; always 0
CData no_valid, no_ready = 0;   // stand for those of stream k where there is none
CData no_alarm = 0;             // stands for o_alarm of a core without one
uint32_t no_word;

using TheBench = Bench<std::remove_reference_t<decltype((MODMILL_K))>, std::remove_reference_t<decltype((MODMILL_A))>,
                       std::remove_reference_t<decltype((MODMILL_B))>, std::remove_reference_t<decltype((MODMILL_R))>>;

}  // namespace
