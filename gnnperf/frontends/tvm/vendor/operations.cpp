// Products and convolutions by a vendor's library, a part at a time: threads of the caller, each of which
// computes a part of its own, do not compete with threads that the library would start. Results are
// overwritten. What is computed is said in words, see `operations.py`.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
#ifdef GNNPERF_ONEDNN
#include <dnnl.hpp>
#include <omp.h>
#else
#include <cblas.h>
extern "C" void scipy_openblas_set_num_threads(int);
#endif

// What a thread keeps it never frees: threads end with the process, some after the library's own state is gone.
namespace {
using Sizes = std::vector<int64_t>;

struct Range {  // the part of [0, size) that is computed
  int64_t begin, end;
  Range(int64_t size, int64_t part, int64_t parts, bool shared)
      : begin(shared ? size * part / parts : 0), end(shared ? size * (part + 1) / parts : size) {}
  int64_t size() const { return end - begin; }
};

int64_t number(std::istream& words) {
  int64_t value;
  if (!(words >> value)) throw std::runtime_error("a number is missing");
  return value;
}

#ifdef GNNPERF_ONEDNN
struct OneThread {  // oneDNN shares work among OpenMP's threads
  const int before = omp_get_max_threads();
  OneThread() { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before); }
};

void multiply(char ta, char tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
              int64_t ldb, float* c, int64_t ldc) {
  if (dnnl_sgemm(ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc) != dnnl_success)
    throw std::runtime_error("sgemm refuses its arguments");
}
void multiply(char, char, int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, double*,
              int64_t) {
  throw std::runtime_error("no products of float64");
}
#else
struct OneThread {
  OneThread() { static const bool once = (scipy_openblas_set_num_threads(1), true); (void)once; }
};

CBLAS_TRANSPOSE transposed(char t) { return t == 'T' ? CblasTrans : CblasNoTrans; }
void multiply(char ta, char tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
              int64_t ldb, float* c, int64_t ldc) {
  scipy_cblas_sgemm(CblasRowMajor, transposed(ta), transposed(tb), m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}
void multiply(char ta, char tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
              const double* b, int64_t ldb, double* c, int64_t ldc) {
  scipy_cblas_dgemm(CblasRowMajor, transposed(ta), transposed(tb), m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}
#endif

// C[m, n] = A[m, k] B[k, n], as often as there are iterations around it.
struct Product {
  std::string type;
  char ta, tb, shared;  // shared: what parts are of: rows 'm', columns 'n', iterations around it 'b'
  int64_t m, n, k, lda, ldb, ldc;
  std::vector<std::array<int64_t, 4>> around;  // extent, and steps of A, B and C

  explicit Product(std::istream& words) {
    words >> type >> ta >> tb >> shared;
    for (int64_t* value : {&m, &n, &k, &lda, &ldb, &ldc}) *value = number(words);
    around.resize(number(words));
    for (auto& loop : around)
      for (int64_t& value : loop) value = number(words);
  }

  template <class T> void run(int64_t part, int64_t parts, const T* a, const T* b, T* c) const {
    int64_t count = 1;
    for (const auto& loop : around) count *= loop[0];
    const Range calls(count, part, parts, shared == 'b');
    const Range rows(m, part, parts, shared == 'm'), columns(n, part, parts, shared == 'n');
    if (!rows.size() || !columns.size()) return;
    a += rows.begin * (ta == 'T' ? 1 : lda);
    b += columns.begin * (tb == 'T' ? ldb : 1);
    c += rows.begin * ldc + columns.begin;
    for (int64_t call = calls.begin; call < calls.end; ++call) {
      int64_t left = call, at[3] = {0, 0, 0};
      for (auto loop = around.rbegin(); loop != around.rend(); ++loop) {
        for (int i = 0; i < 3; ++i) at[i] += left % (*loop)[0] * (*loop)[i + 1];
        left /= (*loop)[0];
      }
      multiply(ta, tb, rows.size(), columns.size(), k, a + at[0], lda, b + at[1], ldb, c + at[2], ldc);
    }
  }
};

#ifdef GNNPERF_ONEDNN
using dnnl::memory;

dnnl::engine& cpu() {
  static thread_local auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& queue() {
  static thread_local auto& stream = *new dnnl::stream(cpu());
  return stream;
}

// Of pictures with any number of dimensions.
struct Convolution {
  char channels, shared;  // channels: 'l'ast or 'f'irst; shared: pictures 'n', or first dimension of results 's'
  int64_t pictures, in, out;
  Sizes size, kernel, result, stride, dilation, padding;  // padding: before the first element

  explicit Convolution(std::istream& words) {
    words >> channels >> shared;
    const int64_t rank = number(words);
    for (int64_t* value : {&pictures, &in, &out}) *value = number(words);
    for (Sizes* sizes : {&size, &kernel, &result, &stride, &dilation, &padding}) {
      sizes->resize(rank);
      for (int64_t& value : *sizes) value = number(words);
    }
  }

  Sizes steps(int64_t depth, const Sizes& spatial) const {
    Sizes found(2 + spatial.size());
    int64_t step = channels == 'l' ? depth : 1;
    for (size_t d = spatial.size(); d-- > 0; step *= spatial[d]) found[2 + d] = step;
    found[1] = channels == 'l' ? 1 : step;
    found[0] = channels == 'l' ? step : step * depth;
    return found;
  }
};

// A part of a convolution, ready to run.
struct Part {
  memory::desc source, weights, target;  // as the caller has them
  dnnl::convolution_forward::primitive_desc description;
  int64_t from = 0, to = 0, source_step = 0, target_step = 0, repeats = 1;

  Part(const Convolution& c, int64_t part, int64_t parts, const memory::desc* packed) {
    const Range pictures(c.pictures, part, parts, c.shared == 'n');
    const Range rows(c.result[0], part, parts, c.shared == 's');
    Sizes size = c.size, result = c.result, before = c.padding, after = c.padding;
    const int64_t first = rows.begin * c.stride[0] - c.padding[0];
    const int64_t last = (rows.end - 1) * c.stride[0] - c.padding[0] + (c.kernel[0] - 1) * c.dilation[0] + 1;
    const int64_t begin = std::max<int64_t>(first, 0), end = std::min(last, c.size[0]);
    size[0] = end - begin, result[0] = rows.size(), before[0] = begin - first, after[0] = last - end;
    for (size_t d = 1; d < size.size(); ++d)
      after[d] = (c.result[d] - 1) * c.stride[d] + (c.kernel[d] - 1) * c.dilation[d] + 1 - c.size[d] - before[d];
    const Sizes source_steps = c.steps(c.in, c.size), target_steps = c.steps(c.out, c.result);
    const bool whole = rows.size() == c.result[0] && begin == 0 && end == c.size[0];
    // Parts of a picture are computed one picture at a time.
    repeats = whole ? 1 : pictures.size();
    source_step = source_steps[0], target_step = target_steps[0];
    from = begin * source_steps[2] + pictures.begin * source_step;
    to = rows.begin * target_steps[2] + pictures.begin * target_step;
    const int64_t together = whole ? pictures.size() : 1;
    source = described(c, together, c.in, size, source_steps, c.size);
    target = described(c, together, c.out, result, target_steps, c.result);
    Sizes filter{c.out, c.in};
    filter.insert(filter.end(), c.kernel.begin(), c.kernel.end());
    const auto type = memory::data_type::f32;
    const auto any = memory::format_tag::any;
    Sizes dilates = c.dilation;
    for (int64_t& d : dilates) d -= 1;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const bool free = c.channels == 'f';
    description = dnnl::convolution_forward::primitive_desc(
        cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        free ? memory::desc(source.get_dims(), type, any) : source,
        packed ? *packed : memory::desc(filter, type, any),
        free ? memory::desc(target.get_dims(), type, any) : target, c.stride, dilates, before, after,
        attributes);
  }

  // Steps between pictures do not matter where there is one; as those of a whole one, they name a format.
  static memory::desc described(const Convolution& c, int64_t pictures, int64_t depth, const Sizes& size,
                                Sizes steps, const Sizes& all) {
    if (pictures == 1) {
      Sizes own = c.steps(depth, size);
      if (c.channels == 'l' || size == all) steps = own;
    }
    Sizes dims{pictures, depth};
    dims.insert(dims.end(), size.begin(), size.end());
    return memory::desc(dims, memory::data_type::f32, steps);
  }
};

struct Ready {
  Part part;
  dnnl::convolution_forward primitive;
  memory weights, scratch, source, target, own_source, own_target;
  std::unique_ptr<dnnl::reorder> take, give;

  explicit Ready(const Part& p)
      : part(p), primitive(p.description), weights(p.description.weights_desc(), cpu(), nullptr),
        scratch(p.description.scratchpad_desc(), cpu()), source(p.source, cpu(), nullptr),
        target(p.target, cpu(), nullptr) {
    if (p.description.src_desc() != p.source) {
      own_source = memory(p.description.src_desc(), cpu());
      take.reset(new dnnl::reorder(source, own_source));
    }
    if (p.description.dst_desc() != p.target) {
      own_target = memory(p.description.dst_desc(), cpu());
      give.reset(new dnnl::reorder(own_target, target));
    }
  }

  void run(const float* from, const float* filter, float* to) {
    weights.set_data_handle(const_cast<float*>(filter));
    for (int64_t picture = 0; picture < part.repeats; ++picture) {
      source.set_data_handle(const_cast<float*>(from + part.from + picture * part.source_step));
      target.set_data_handle(to + part.to + picture * part.target_step);
      if (take) take->execute(queue(), source, own_source);
      primitive.execute(queue(), {{DNNL_ARG_SRC, take ? own_source : source}, {DNNL_ARG_WEIGHTS, weights},
                                  {DNNL_ARG_DST, give ? own_target : target},
                                  {DNNL_ARG_SCRATCHPAD, scratch}});
      if (give) give->execute(queue(), own_target, target);
      queue().wait();
    }
  }
};

void convolve(const std::string& text, std::istream& words, int64_t part, int64_t parts, const void* a,
              const void* b, void* c) {
  static thread_local auto& known = *new std::unordered_map<std::string, std::unique_ptr<Ready>>;
  auto& ready = known[text + " " + std::to_string(part) + " " + std::to_string(parts)];
  if (!ready) {
    const Convolution whole(words);
    const auto packed = Part(whole, 0, parts, nullptr).description.weights_desc();
    ready.reset(new Ready(Part(whole, part, parts, &packed)));
  }
  ready->run((const float*)a, (const float*)b, (float*)c);
}
#endif
}  // namespace

// Computes one of so many parts.
extern "C" int GNNPERF_ENTRY(const char* text, int64_t part, int64_t parts, const void* a, const void* b,
                             void* c) try {
  const OneThread alone;
  std::istringstream words(text);
  std::string kind;
  words >> kind;
  if (kind == "product") {
    static thread_local auto& known = *new std::unordered_map<std::string, std::unique_ptr<Product>>;
    auto& product = known[text];
    if (!product) product.reset(new Product(words));
    if (product->type == "float32") product->run(part, parts, (const float*)a, (const float*)b, (float*)c);
    else product->run(part, parts, (const double*)a, (const double*)b, (double*)c);
    return 0;
  }
#ifdef GNNPERF_ONEDNN
  if (kind == "convolution") {
    convolve(text, words, part, parts, a, b, c);
    return 0;
  }
#endif
  throw std::runtime_error("the operation is not known");
} catch (const std::exception& error) {
  std::fprintf(stderr, "gnnperf: %s: %s\n", text, error.what());
  std::abort();
}

#ifdef GNNPERF_ONEDNN
// The order in which a convolution wants its weights [out, in, kernel]: their number of dimensions, their sizes
// with padding, the steps of their blocks, the number of inner blocks, the size of each and its dimension.
// Returns how many numbers, 0 where the library has no such convolution.
extern "C" int gnnperf_onednn_weights(const char* text, int64_t parts, int64_t* found) try {
  const OneThread alone;
  std::istringstream words(text);
  std::string kind;
  words >> kind;
  const auto desc = Part(Convolution(words), 0, parts, nullptr).description.weights_desc();
  int64_t* at = found;
  *at++ = desc.get_ndims();
  for (int64_t value : desc.get_padded_dims()) *at++ = value;
  for (int64_t value : desc.get_strides()) *at++ = value;
  *at++ = desc.get_inner_nblks();
  for (int64_t value : desc.get_inner_blks()) *at++ = value;
  for (int64_t value : desc.get_inner_idxs()) *at++ = value;
  return at - found;
} catch (const std::exception&) {
  return 0;
}
#endif
