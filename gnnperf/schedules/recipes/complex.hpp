// Complex numbers beside other types: std::complex only combines with its own element type.
#ifndef GNNPERF_COMPLEX
#define GNNPERF_COMPLEX
#include <complex>
#include <type_traits>
namespace {
template <class T> using cplx = std::complex<T>;
template <class T, class S, class R>
using if_other = typename std::enable_if<std::is_arithmetic<S>::value && !std::is_same<S, T>::value, R>::type;
template <class T, class S, class R> using if_wider = typename std::enable_if<!std::is_same<S, T>::value, R>::type;

template <class T, class S> inline if_other<T, S, cplx<T>> operator+(const cplx<T>& a, S b) { return a + T(b); }
template <class T, class S> inline if_other<T, S, cplx<T>> operator+(S a, const cplx<T>& b) { return T(a) + b; }
template <class T, class S> inline if_other<T, S, cplx<T>> operator-(const cplx<T>& a, S b) { return a - T(b); }
template <class T, class S> inline if_other<T, S, cplx<T>> operator-(S a, const cplx<T>& b) { return T(a) - b; }
template <class T, class S> inline if_other<T, S, cplx<T>> operator*(const cplx<T>& a, S b) { return a * T(b); }
template <class T, class S> inline if_other<T, S, cplx<T>> operator*(S a, const cplx<T>& b) { return T(a) * b; }
template <class T, class S> inline if_other<T, S, cplx<T>> operator/(const cplx<T>& a, S b) { return a / T(b); }
template <class T, class S> inline if_other<T, S, cplx<T>> operator/(S a, const cplx<T>& b) { return T(a) / b; }

template <class T, class S, class C = cplx<typename std::common_type<T, S>::type>>
inline if_wider<T, S, C> operator+(const cplx<T>& a, const cplx<S>& b) { return C(a) + C(b); }
template <class T, class S, class C = cplx<typename std::common_type<T, S>::type>>
inline if_wider<T, S, C> operator-(const cplx<T>& a, const cplx<S>& b) { return C(a) - C(b); }
template <class T, class S, class C = cplx<typename std::common_type<T, S>::type>>
inline if_wider<T, S, C> operator*(const cplx<T>& a, const cplx<S>& b) { return C(a) * C(b); }
template <class T, class S, class C = cplx<typename std::common_type<T, S>::type>>
inline if_wider<T, S, C> operator/(const cplx<T>& a, const cplx<S>& b) { return C(a) / C(b); }

template <class T> inline T gp_abs(const cplx<T>& a) { return std::abs(a); }
template <class T> inline cplx<T> gp_conj(const cplx<T>& a) { return std::conj(a); }
template <class T> inline T gp_real(const cplx<T>& a) { return a.real(); }
template <class T> inline T gp_imag(const cplx<T>& a) { return a.imag(); }
#pragma omp declare reduction(+ : cplx<double>, cplx<float> : omp_out += omp_in)
#pragma omp declare reduction(* : cplx<double>, cplx<float> : omp_out *= omp_in) initializer(omp_priv = 1)
}  // namespace
#endif
