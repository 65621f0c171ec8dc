// Threads that have rows in turn, each some steps behind the one with the rows above.
#ifndef GNNPERF_PIPELINE
#define GNNPERF_PIPELINE
#include <algorithm>
#include <atomic>
#include <thread>
namespace {
struct Pipeline {
  struct Progress {
    std::atomic<int64_t> steps{0};
    char apart[128 - sizeof(std::atomic<int64_t>)];  // on cache lines of their own
  };
  std::unique_ptr<Progress[]> of;
  explicit Pipeline(int64_t threads) : of(new Progress[threads]) {}
};

// What one thread knows. `number`: of its rows, counted in groups; those of all groups before are `number`
// times `steps + 1`: a group is done when its last elements are, too, which come after all steps. `seen`: how
// far the thread with the rows above was when it was last looked at, which may take as long as many elements.
struct Stage {
  const int64_t steps, behind, thread, threads, piece;
  std::atomic<int64_t>& mine;
  const std::atomic<int64_t>& above;
  int64_t number = 0;
  mutable int64_t seen = 0;

  Stage(const Pipeline& pipeline, int64_t all_steps, int64_t steps_behind)
      : steps(all_steps), behind(steps_behind), thread(omp_get_thread_num()),
        threads(omp_get_num_threads()),
        piece(std::max<int64_t>(32, std::min<int64_t>(1024, steps / (2 * threads)))),
        mine(pipeline.of[thread].steps), above(pipeline.of[(thread + threads - 1) % threads].steps) {}

  void begin(int64_t group) {
    number = group;
    wait(std::min(piece, steps));
  }
  // How far a thread that is at `from` goes on, as soon as it may.
  int64_t next(int64_t from) const {
    const int64_t to = std::min(from + piece, steps);
    wait(to);
    return to;
  }
  void wait_for_all() const { wait(steps); }
  void done(int64_t to) const { mine.store(number * (steps + 1) + to, std::memory_order_release); }
  void finish() const { done(steps + 1); }

 private:
  void wait(int64_t to) const {
    const int64_t needed = (number - 1) * (steps + 1) + (to + behind <= steps ? to + behind : steps + 1);
    for (int tries = 0; seen < needed; ++tries) {
      if (tries > 256) std::this_thread::yield();
#if defined(__x86_64__)
      else if (tries) __builtin_ia32_pause();
#endif
      seen = above.load(std::memory_order_acquire);
    }
  }
};
}  // namespace
#endif
