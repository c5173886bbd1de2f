// A dataset of elements that lie in memory: windows, lists, groups.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace headrace {

class ElementsDataset : public Dataset {
 public:
  // `list`: one that users gave, not a window.
  ElementsDataset(ElementSpec spec, std::vector<Element> elements,
                  bool list = false)
      : Dataset(std::move(spec)), elements_(std::move(elements)), list_(list) {}
  StringView kind() const override { return list_ ? "List" : "Window"; }
  int64_t Count() const override {
    return static_cast<int64_t>(elements_.size());
  }
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override;
  const std::vector<Element>& elements() const { return elements_; }

 protected:
  IteratorPtr NewIterator(std::string prefix) const override;

 private:
  const std::vector<Element> elements_;
  const bool list_;
};

}  // namespace headrace
