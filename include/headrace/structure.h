// Structures: what traced functions and control flow take and give.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/export.h"
#include "headrace/tensor.h"
#include "headrace/variable.h"

namespace headrace {
class Signature;  // the library's own
}

namespace headrace::tf {

// What a tensor is like: in the place of a tensor where a trace is asked for.
// -1 in the shape is any size.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  TensorShape shape;
};

namespace internal {

// Takes structures apart: told of each part in order.
class HR_API Parts {
 public:
  explicit Parts(Signature* signature) : signature_(signature) {}
  void AddTensor(const Tensor& t);
  void AddVariable(const Variable& v);
  void AddSpec(const TensorSpec& s);
  void AddNone();
  void AddBool(bool v);
  void AddInt(int64_t v);
  void AddFloat(double v);
  void AddText(std::string_view v);
  // So many items follow; of a dict, keys by rising order and values.
  void AddTuple(size_t count);
  void AddList(size_t count);
  void AddDict(size_t count);

 private:
  Signature* signature_;
};

// Puts structures together. Each call gives the next part; Error
// (kInvalidArgument), with the part's place, where it is another kind.
class HR_API Reader {
 public:
  struct Source;  // the library's own
  explicit Reader(const Source* source) : source_(source) {}
  Tensor TakeTensor();  // also of values, as Python makes tensors of them
  Variable TakeVariable();
  bool TakeNone();  // false, and nothing taken, where the next is something
  bool TakeBool();
  int64_t TakeInt(int64_t least, int64_t most);
  double TakeFloat();
  std::string TakeText();
  size_t TakeSequence();        // the count of a tuple or list
  void TakeItems(size_t want);  // a tuple or list of so many
  size_t TakeDict();
  // A dict of `count` keys, and each of them.
  void TakeFields(size_t want);
  void TakeKey(std::string_view want);

 private:
  [[noreturn]] void Refuse(const std::string& wanted) const;
  const Source* source_;
  size_t at_ = 0, next_ = 0;  // token, tensor
};

// Converts to anything: what a field of an aggregate is tried with.
struct AnyField {
  template <typename T>
  operator T() const;  // never defined
};
template <typename T, size_t... I>
constexpr bool MadeOf(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField())...}; };
}
constexpr size_t kMostFields = 8;
template <typename T, size_t N = kMostFields>
constexpr size_t CountFields() {
  if constexpr (N == 0 || MadeOf<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return CountFields<T, N - 1>();
  }
}
// References to the fields of an aggregate.
template <typename T>
constexpr auto FieldsOf(T& s) {
  constexpr size_t n = CountFields<std::remove_const_t<T>>();
  static_assert(n > 0, "a structure has between one and eight fields");
  static_assert(!MadeOf<std::remove_const_t<T>>(
                    std::make_index_sequence<kMostFields + 1>()),
                "a structure has eight fields at most");
  if constexpr (n == 1) {
    auto& [a] = s;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = s;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = s;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = s;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = s;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = s;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = s;
    return std::tie(a, b, c, d, e, f, g);
  } else {
    auto& [a, b, c, d, e, f, g, h] = s;
    return std::tie(a, b, c, d, e, f, g, h);
  }
}
template <typename T>
concept NamedFields = requires {
  T::kFields.size();
};

}  // namespace internal

// How values of type T are structures. The kinds that there are:
//
// | C++ | what it is, and to Python |
// |---|---|
// | Tensor | a tensor |
// | Variable | a variable, by reference |
// | TensorSpec | stands for a tensor (Function::GetConcreteFunction) |
// | bool, integers, floating point, enums, std::string | a value |
// | std::nullptr_t, an empty std::optional | None |
// | std::tuple, std::pair, aggregates of up to eight fields | a tuple |
// | std::vector, std::array | a list |
// | std::map of strings, aggregates with kFields | a dict |
//
// Values belong to the signature, as Python's numbers do: a function is traced
// for each of them anew. Declare a parameter as Tensor, and a number that is
// passed for it becomes a scalar tensor. An aggregate names its fields so:
//
//   struct State {
//     tf::Tensor position, speed;
//     static constexpr std::array kFields{"position", "speed"};
//   };
//
// Specialise StructureTraits for types of another kind: a member
//   static void TakeApart(internal::Parts&, const T&)
// which may call that of other types, and its opposite
//   static T PutTogether(internal::Reader&).
template <typename T, typename = void>
struct StructureTraits {
  static_assert(std::is_aggregate_v<T>,
                "this type is no structure: specialise StructureTraits");
  static constexpr size_t kCount = internal::CountFields<T>();

  static void TakeApart(internal::Parts& parts, const T& s) {
    const auto fields = internal::FieldsOf(s);
    if constexpr (internal::NamedFields<T>) {
      parts.AddDict(kCount);
      ForEachByName([&](auto index) {
        parts.AddText(T::kFields[index]);
        TakeItem(parts, std::get<index>(fields));
      });
    } else {
      parts.AddTuple(kCount);
      std::apply([&](const auto&... f) { (TakeItem(parts, f), ...); }, fields);
    }
  }
  static T PutTogether(internal::Reader& reader) {
    T s;
    auto fields = internal::FieldsOf(s);
    const auto put = [&](auto& f) {
      f = StructureTraits<std::decay_t<decltype(f)>>::PutTogether(reader);
    };
    if constexpr (internal::NamedFields<T>) {
      reader.TakeFields(kCount);
      ForEachByName([&](auto index) {
        reader.TakeKey(T::kFields[index]);
        put(std::get<index>(fields));
      });
    } else {
      reader.TakeItems(kCount);
      std::apply([&](auto&... f) { (put(f), ...); }, fields);
    }
    return s;
  }

 private:
  template <typename Item>
  static void TakeItem(internal::Parts& parts, const Item& item) {
    StructureTraits<Item>::TakeApart(parts, item);
  }
  // The places of the fields by their names' order.
  static constexpr auto Sorted() {
    static_assert(T::kFields.size() == kCount, "kFields names each field");
    std::array<size_t, kCount> order{};
    for (size_t i = 0; i < kCount; ++i) order[i] = i;
    for (size_t i = 0; i < kCount; ++i) {
      for (size_t j = i + 1; j < kCount; ++j) {
        if (std::string_view(T::kFields[order[j]]) <
            std::string_view(T::kFields[order[i]])) {
          std::swap(order[i], order[j]);
        }
      }
    }
    return order;
  }
  template <typename F>
  static void ForEachByName(const F& f) {
    constexpr auto order = Sorted();
    [&]<size_t... I>(std::index_sequence<I...>) {
      (f(std::integral_constant<size_t, order[I]>()), ...);
    }
    (std::make_index_sequence<kCount>());
  }
};

template <>
struct StructureTraits<Tensor> {
  static void TakeApart(internal::Parts& p, const Tensor& t) { p.AddTensor(t); }
  static Tensor PutTogether(internal::Reader& r) { return r.TakeTensor(); }
};
template <>
struct StructureTraits<Variable> {
  static void TakeApart(internal::Parts& p, const Variable& v) {
    p.AddVariable(v);
  }
  static Variable PutTogether(internal::Reader& r) { return r.TakeVariable(); }
};
template <>
struct StructureTraits<TensorSpec> {
  static void TakeApart(internal::Parts& p, const TensorSpec& s) {
    p.AddSpec(s);
  }
};
template <>
struct StructureTraits<std::nullptr_t> {
  static void TakeApart(internal::Parts& p, std::nullptr_t) { p.AddNone(); }
  static std::nullptr_t PutTogether(internal::Reader& r) {
    r.TakeNone();
    return nullptr;
  }
};
template <typename T>
struct StructureTraits<
    T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>> {
  static void TakeApart(internal::Parts& p, T v) {
    if constexpr (std::is_same_v<T, bool>) {
      p.AddBool(v);
    } else if constexpr (std::is_floating_point_v<T>) {
      p.AddFloat(v);
    } else {
      p.AddInt(static_cast<int64_t>(v));
    }
  }
  static T PutTogether(internal::Reader& r) {
    if constexpr (std::is_same_v<T, bool>) {
      return r.TakeBool();
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(r.TakeFloat());
    } else if constexpr (std::is_enum_v<T> || sizeof(T) == 8) {
      return static_cast<T>(r.TakeInt(INT64_MIN, INT64_MAX));
    } else {
      return static_cast<T>(r.TakeInt(std::numeric_limits<T>::min(),
                                      std::numeric_limits<T>::max()));
    }
  }
};
template <>
struct StructureTraits<std::string> {
  static void TakeApart(internal::Parts& p, const std::string& v) {
    p.AddText(v);
  }
  static std::string PutTogether(internal::Reader& r) { return r.TakeText(); }
};
template <>
struct StructureTraits<const char*> {
  static void TakeApart(internal::Parts& p, const char* v) { p.AddText(v); }
};
template <size_t N>
struct StructureTraits<char[N]> {
  static void TakeApart(internal::Parts& p, const char* v) { p.AddText(v); }
};
template <typename T>
struct StructureTraits<std::optional<T>> {
  static void TakeApart(internal::Parts& p, const std::optional<T>& o) {
    o ? StructureTraits<T>::TakeApart(p, *o) : p.AddNone();
  }
  static std::optional<T> PutTogether(internal::Reader& r) {
    if (r.TakeNone()) return std::nullopt;
    return StructureTraits<T>::PutTogether(r);
  }
};
template <typename... T>
struct StructureTraits<std::tuple<T...>> {
  static void TakeApart(internal::Parts& p, const std::tuple<T...>& s) {
    p.AddTuple(sizeof...(T));
    std::apply(
        [&](const auto&... item) {
          (StructureTraits<std::decay_t<T>>::TakeApart(p, item), ...);
        },
        s);
  }
  static std::tuple<T...> PutTogether(internal::Reader& r) {
    r.TakeItems(sizeof...(T));
    // In braces, so that they are read in order.
    return std::tuple<T...>{StructureTraits<T>::PutTogether(r)...};
  }
};
template <typename A, typename B>
struct StructureTraits<std::pair<A, B>> {
  static void TakeApart(internal::Parts& p, const std::pair<A, B>& s) {
    p.AddTuple(2);
    StructureTraits<A>::TakeApart(p, s.first);
    StructureTraits<B>::TakeApart(p, s.second);
  }
  static std::pair<A, B> PutTogether(internal::Reader& r) {
    r.TakeItems(2);
    return std::pair<A, B>{StructureTraits<A>::PutTogether(r),
                           StructureTraits<B>::PutTogether(r)};
  }
};
template <typename T>
struct StructureTraits<std::vector<T>> {
  static void TakeApart(internal::Parts& p, const std::vector<T>& s) {
    p.AddList(s.size());
    for (const T& item : s) StructureTraits<T>::TakeApart(p, item);
  }
  static std::vector<T> PutTogether(internal::Reader& r) {
    std::vector<T> s;
    for (size_t n = r.TakeSequence(); n > 0; --n) {
      s.push_back(StructureTraits<T>::PutTogether(r));
    }
    return s;
  }
};
template <typename T, size_t N>
struct StructureTraits<std::array<T, N>> {
  static void TakeApart(internal::Parts& p, const std::array<T, N>& s) {
    p.AddList(N);
    for (const T& item : s) StructureTraits<T>::TakeApart(p, item);
  }
  static std::array<T, N> PutTogether(internal::Reader& r) {
    r.TakeItems(N);
    std::array<T, N> s;
    for (T& item : s) item = StructureTraits<T>::PutTogether(r);
    return s;
  }
};
template <typename T>
struct StructureTraits<std::map<std::string, T>> {
  static void TakeApart(internal::Parts& p, const std::map<std::string, T>& s) {
    p.AddDict(s.size());
    for (const auto& [key, item] : s) {
      p.AddText(key);
      StructureTraits<T>::TakeApart(p, item);
    }
  }
  static std::map<std::string, T> PutTogether(internal::Reader& r) {
    std::map<std::string, T> s;
    for (size_t n = r.TakeDict(); n > 0; --n) {
      std::string key = r.TakeText();
      s.emplace(std::move(key), StructureTraits<T>::PutTogether(r));
    }
    return s;
  }
};

namespace internal {

// A structure that is known by its address, for the library's own code.
struct Given {
  const void* value;
  void (*take_apart)(Parts&, const void*);

  template <typename T>
  static Given Of(const T& value) {
    return {&value, [](Parts& p, const void* v) {
              StructureTraits<T>::TakeApart(p, *static_cast<const T*>(v));
            }};
  }
};
// All arguments of a call, a tuple of references.
template <typename All>
Given GivenAll(const All& all) {
  return {
      &all, [](Parts& p, const void* v) {
        p.AddTuple(std::tuple_size_v<All>);
        std::apply(
            [&p](const auto&... arg) {
              (StructureTraits<std::remove_cvref_t<decltype(arg)>>::TakeApart(
                   p, arg),
               ...);
            },
            *static_cast<const All*>(v));
      }};
}
// Where a structure is put.
struct Taken {
  void* value;
  void (*put_together)(Reader&, void*);

  template <typename T>
  static Taken Into(std::optional<T>* value) {
    return {value, [](Reader& r, void* v) {
              static_cast<std::optional<T>*>(v)->emplace(
                  StructureTraits<T>::PutTogether(r));
            }};
  }
  static Taken Nothing() {
    return {nullptr, [](Reader&, void*) {}};
  }
};

// What a traced call gives, told where to put it: an R, or nothing.
template <typename R, typename F>
R Result(const F& traced) {
  if constexpr (std::is_void_v<R>) {
    traced(Taken::Nothing());
  } else {
    std::optional<R> result;
    traced(Taken::Into(&result));
    return *std::move(result);
  }
}

}  // namespace internal
}  // namespace headrace::tf
