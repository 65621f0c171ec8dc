// Peak floating-point rate and memory bandwidth of this CPU, on one thread and on all.
// Usage: probe THREADS ARRAY_BYTES; prints one JSON object. A peak is a ceiling: the best of short trials, taken
// in turn over some seconds, until it rises no more. What hides it for a while hides it in some rounds only.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <omp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
// Enough independent chains to fill two units of latency 4 to 5, few enough for 16 registers.
constexpr int kChains = 12;
constexpr int kTrials = 4;
constexpr int kLeastRounds = 10, kSteadyRounds = 5;
constexpr double kRise = 1.01, kRest_s = 0.2, kLongest_s = 20;
constexpr double kEnough_s = 0.05;  // trials that pass over the arrays of a large cache: one a round

static double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One thread's share: kChains chains of `steps` dependent fused multiply-adds on full vectors.
template <class T> static T multiply_add(long steps, T factor, T term) {
    using Vector [[gnu::vector_size(kVectorBytes)]] = T;
    Vector chain[kChains];
    for (int c = 0; c < kChains; ++c) chain[c] = Vector{} + T(c);
    for (long i = 0; i < steps; ++i) {
#pragma GCC unroll 12
        for (int c = 0; c < kChains; ++c) chain[c] = chain[c] * factor + term;
    }
    T sum = 0;
    for (int c = 0; c < kChains; ++c)
        for (unsigned l = 0; l < sizeof(Vector) / sizeof(T); ++l) sum += chain[c][l];
    return sum;
}

template <class T> static double peak_gflops(int threads) {
    const long steps = 400000;
    volatile T factor = T(0.5), term = T(1), sink = 0;  // volatile: nothing is known at compile time
    double best_s = 1e30;
    for (int trial = 0; trial < kTrials; ++trial) {
        double start = 0, stop = 0;
#pragma omp parallel num_threads(threads)
        {
#pragma omp barrier
#pragma omp master
            start = now_s();
            T result = multiply_add<T>(steps, factor, term);
#pragma omp barrier
#pragma omp master
            stop = now_s();
#pragma omp critical
            sink = sink + result;
        }
        if (stop - start < best_s) best_s = stop - start;
    }
    const double lanes = kVectorBytes / double(sizeof(T));
    return 2.0 * lanes * kChains * steps * threads / best_s * 1e-9;
}

// STREAM triad, counted as STREAM counts it: two reads and one write of 8 bytes per element.
static double triad_gbps(int threads, double *a, const double *b, const double *c, long n) {
    double best_s = 1e30, spent_s = 0;
    for (int trial = 0; trial < kTrials && spent_s < kEnough_s; ++trial) {
        const double start = now_s();
#pragma omp parallel for simd schedule(static) num_threads(threads)
        for (long i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
        const double elapsed = now_s() - start;
        spent_s += elapsed;
        if (elapsed < best_s) best_s = elapsed;
    }
    return 24.0 * n / best_s * 1e-9;
}

static double *pages(size_t bytes) {
    void *memory = aligned_alloc(size_t(2) << 20, (bytes + (size_t(2) << 20) - 1) >> 21 << 21);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<double *>(memory);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    // Before all ordinary processes, where we may: others' work must not hide the ceiling.
    const sched_param priority{1};
    if (sched_setscheduler(0, SCHED_RR, &priority) != 0) setpriority(PRIO_PROCESS, 0, -20);
    const int threads = atoi(argv[1]);
    const long n = atol(argv[2]) / 8;
    double *a = pages(8 * n), *b = pages(8 * n), *c = pages(8 * n);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (long i = 0; i < n; ++i) a[i] = 0, b[i] = 1, c[i] = 2;  // first touch: pages near their threads
    struct { const char *name; std::function<double()> trial; double best; } peaks[] = {
        {"peak_gflops_fp32", [=] { return peak_gflops<float>(threads); }, 0},
        {"peak_gflops_fp64", [=] { return peak_gflops<double>(threads); }, 0},
        {"bandwidth_gbps", [=] { return triad_gbps(threads, a, b, c, n); }, 0},
        {"peak_gflops_fp32_1_thread", [=] { return peak_gflops<float>(1); }, 0},
        {"peak_gflops_fp64_1_thread", [=] { return peak_gflops<double>(1); }, 0},
        {"bandwidth_gbps_1_thread", [=] { return triad_gbps(1, a, b, c, n); }, 0},
    };
    const double start = now_s();
    for (int round = 1, rose = 0;
         round <= kLeastRounds || (round - rose <= kSteadyRounds && now_s() - start < kLongest_s); ++round) {
        for (auto &peak : peaks) {
            const double found = peak.trial();
            if (found > kRise * peak.best) rose = round;
            if (found > peak.best) peak.best = found;
        }
        usleep(useconds_t(1e6 * kRest_s));
    }
    const char *before = "{";
    for (const auto &peak : peaks) {
        printf("%s\"%s\": %.6g", before, peak.name, peak.best);
        before = ", ";
    }
    printf("}\n");
    return 0;
}
