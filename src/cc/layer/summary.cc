// The table that Keras' Model.summary prints.
#include <cxxabi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <typeinfo>

#include "absl/strings/str_join.h"
#include "cc/compose.h"
#include "cc/layer/network.h"
#include "cc/layer/symbolic.h"

namespace headrace::tf::layers {
namespace {

using Cells = std::vector<std::vector<std::string>>;  // lines of each column

std::string KindOf(const Layer& layer) {
  int status = 0;
  char* text =
      abi::__cxa_demangle(typeid(layer).name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : typeid(layer).name();
  std::free(text);
  const size_t last = name.rfind("::");
  return last == std::string::npos ? name : name.substr(last + 2);
}

struct WeightCounts {
  int64_t params = 0, bytes = 0;
};
WeightCounts SizesOf(const std::vector<Variable>& variables) {
  WeightCounts sizes;
  for (const Variable& v : variables) {
    int64_t n = 1;
    for (const int64_t d : v.shape().dims) n *= d;
    sizes.params += n;
    sizes.bytes += n * DTypeSize(internal::Core(v.dtype()));
  }
  return sizes;
}

// "132.00 Byte", "1.25 KB".
std::string BytesText(int64_t count) {
  const char* const units[] = {"Byte", "KB", "MB", "GB", "TB", "PB"};
  int power = 0;
  double size = static_cast<double>(count);
  while (size >= 1024 && power < 5) size /= 1024, ++power;
  char text[48];
  std::snprintf(text, sizeof text, "%.2f %s", size, units[power]);
  return text;
}

std::string ShapeText(const Layer& layer) {
  std::vector<std::string> shapes;
  for (const TensorShape& s : layer.output_shapes()) {
    shapes.push_back(s.ToString());
  }
  if (shapes.empty()) return "?";
  if (shapes.size() == 1) return shapes[0];
  return "[" + absl::StrJoin(shapes, ", ") + "]";
}

// Rows of cells in columns that end at `positions`.
class Table {
 public:
  explicit Table(std::vector<int> positions)
      : positions_(std::move(positions)) {}

  void Rule(char c) { out_ += std::string(positions_.back(), c) + "\n"; }
  void Gap() { Rule(' '); }
  void Row(const Cells& cells) {
    Cells columns;
    size_t height = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      columns.push_back(Pieces(cells[i], i));
      height = std::max(height, columns.back().size());
    }
    for (size_t line = 0; line < height; ++line) {
      std::string text = " ";
      for (size_t i = 0; i < columns.size(); ++i) {
        if (line < columns[i].size()) text += columns[i][line];
        text.resize(positions_[i], ' ');
      }
      out_ += text + "\n";
    }
  }
  void Line(const std::string& text) { out_ += text + "\n"; }
  std::string Take() { return std::move(out_); }

 private:
  // A cell's lines: text that is too long goes on below.
  std::vector<std::string> Pieces(const std::vector<std::string>& cell,
                                  size_t column) const {
    const int start = column > 0 ? positions_[column - 1] : 1;
    const int gap = column == 3 ? 0 : 2;
    const size_t room = std::max(1, positions_[column] - start - gap);
    std::vector<std::string> lines;
    for (std::string text : cell) {
      while (text.size() > room) {
        lines.push_back(text.substr(0, room));
        text = text.substr(room);
        if (column == 3) continue;
        text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
      }
      lines.push_back(text);
    }
    return lines;
  }

  std::vector<int> positions_;
  std::string out_;
};

struct Shown {
  const Layer* layer;
  std::string name;
  std::vector<std::string> inbound;  // as it is printed
  std::string shape, params;
};

std::vector<std::string> Quoted(const std::vector<std::string>& inbound) {
  if (inbound.empty()) return {"[]"};
  std::vector<std::string> lines;
  for (size_t i = 0; i < inbound.size(); ++i) {
    const bool first = i == 0, last = i + 1 == inbound.size();
    lines.push_back(
        absl::StrCat(first ? "['" : " '", inbound[i], last ? "']" : "',"));
  }
  return lines;
}

Shown ShownAs(const Layer* layer, std::string name) {
  const bool unused = layer->output_shapes().empty();
  return {
      layer,
      std::move(name),
      {},
      ShapeText(*layer),
      unused ? "0 (unused)" : absl::StrCat(SizesOf(layer->variables()).params)};
}

// The layers directly below one that is no Model, named as in checkpoints of
// Keras' models: by their kind, numbered.
std::vector<Shown> Below(const Layer& model) {
  std::vector<Shown> found;
  std::map<std::string, int> counts;
  for (const Module::Named& child : model.children()) {
    const auto* layer = dynamic_cast<const Layer*>(child.module);
    if (layer == nullptr) continue;
    const int count = counts[layer->name()]++;
    found.push_back(ShownAs(layer, count > 0
                                       ? absl::StrCat(layer->name(), "_", count)
                                       : layer->name()));
  }
  return found;
}

}  // namespace

std::string Summary(const Layer& model) {
  const auto* functional = dynamic_cast<const Model*>(&model);
  const bool connected =
      functional != nullptr && !functional->network_->is_chain;
  std::vector<Shown> shown;
  if (functional == nullptr) {
    shown = Below(model);
  } else {
    for (size_t i = 0; i < functional->layers().size(); ++i) {
      const Layer* layer = functional->layers()[i].get();
      Shown s = ShownAs(layer, functional->layer_names()[i]);
      s.inbound = Quoted(functional->network_->InboundOf(i));
      for (const Symbolic& x : functional->inputs()) {
        if (x.rep().node->layer.get() != layer) continue;
        s.shape = "[" + x.shape().ToString() + "]";
        s.params = "0";
      }
      shown.push_back(std::move(s));
    }
  }
  Table table(connected ? std::vector<int>{29, 58, 68, 98}
                        : std::vector<int>{29, 55, 65});
  table.Line("Model: \"" + model.name() + "\"");
  table.Rule('_');
  Cells head = {{"Layer (type)"}, {"Output Shape"}, {"Param #"}};
  if (connected) head.push_back({"Connected to"});
  table.Row(head);
  table.Rule('=');
  for (const Shown& s : shown) {
    Cells row = {
        {s.name + " (" + KindOf(*s.layer) + ")"}, {s.shape}, {s.params}};
    if (connected) row.push_back(s.inbound);
    table.Row(row);
    table.Gap();
  }
  table.Rule('=');
  const WeightCounts all = SizesOf(model.variables());
  const WeightCounts trainable = SizesOf(model.trainable_variables());
  const auto total = [&](const char* what, int64_t params, int64_t bytes) {
    table.Line(absl::StrCat(what, ": ", params, " (", BytesText(bytes), ")"));
  };
  total("Total params", all.params, all.bytes);
  total("Trainable params", trainable.params, trainable.bytes);
  total("Non-trainable params", all.params - trainable.params,
        all.bytes - trainable.bytes);
  table.Rule('_');
  return table.Take();
}

}  // namespace headrace::tf::layers
