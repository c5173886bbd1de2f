#include "serving/metrics/family.h"

#include <algorithm>
#include <type_traits>

namespace headrace::serving::metrics {
namespace {

std::string KeyOf(absl::Span<const StringView> values) {
  if (values.size() == 1) return std::string(values[0]);
  std::string key;
  for (const StringView v : values) {
    const size_t size = v.size();
    key.append(reinterpret_cast<const char*>(&size), sizeof size);
    key.append(v.data(), v.size());
  }
  return key;
}

}  // namespace

template <typename Cell>
std::shared_ptr<Cell> Family<Cell>::At(absl::Span<const StringView> values) {
  const std::string key = KeyOf(values);
  {
    MutexLock lock(mutex_);
    auto it = cells_.find(key);
    if (it != cells_.end()) return it->second.cell;
    if (cells_.size() < kMostCells) {
      auto cell = std::make_shared<Cell>(limits_);
      cells_.emplace(key, Entry{{values.begin(), values.end()}, cell});
      return cell;
    }
  }
  const std::vector<StringView> others(values.size(), kOther);
  const std::string other_key = KeyOf(others);
  MutexLock lock(mutex_);
  Entry& other = cells_[other_key];
  if (other.cell == nullptr) {
    other = {{others.begin(), others.end()}, std::make_shared<Cell>(limits_)};
  }
  return other.cell;
}

template <typename Cell>
const char* Family<Cell>::kind() const {
  if constexpr (std::is_same_v<Cell, Counter>) return "counter";
  if constexpr (std::is_same_v<Cell, Gauge>) return "gauge";
  return "histogram";
}

template <typename Cell>
void Family<Cell>::Visit(const Visitor& visitor) const {
  std::vector<Entry> entries;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : cells_) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.values < b.values; });
  for (const Entry& e : entries) {
    if constexpr (std::is_same_v<Cell, Counter>) {
      visitor.counter(e.values, *e.cell);
    } else if constexpr (std::is_same_v<Cell, Gauge>) {
      visitor.gauge(e.values, *e.cell);
    } else {
      visitor.histogram(e.values, *e.cell);
    }
  }
}

template <typename Cell>
void Family<Cell>::Forget(absl::FunctionRef<bool(const LabelValues&)> which) {
  MutexLock lock(mutex_);
  std::erase_if(cells_,
                [&](const auto& cell) { return which(cell.second.values); });
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

}  // namespace headrace::serving::metrics
