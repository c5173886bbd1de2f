// A picture of a graph.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "command/command.h"
#include "command/graph/frozen.h"
#include "command/graph/layers.h"
#include "command/model/callable.h"
#include "command/show/graph_facts.h"
#include "op/registry.h"

namespace headrace::command {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr PositionalDef kSvgPositionals[] = {
    {"PATH", "A SavedModel's folder, or a graph (.pb, .pbtxt, .meta)."}};

constexpr OptionDef kSvgOptions[] = {
    {"output", 'o', "FILE",
     "Where the picture goes; without it, it is printed."},
    kTagSetOption,
    kSignatureOption,
    {"function", 'f', "NAME", "Of a graph: this function's body."},
    {"depth", 'd', "COUNT",
     "Nodes that share so many parts of their names are one box (as many as "
     "give "
     "at most 150 boxes)."},
    {"constants", 'c', "", "Constants are boxes, too."}};

constexpr size_t kMostBoxes = 5000;
constexpr size_t kReadableBoxes = 150;
constexpr int kDeepestNames = 8;

// Sizes in pixels.
constexpr double kBoxHeight = 36, kLayerHeight = 76, kGap = 18, kMargin = 20;
constexpr double kLetter = 6.7;  // of the font, in width
constexpr size_t kLongestLabel = 34;

std::string Xml(StringView text) {
  return absl::StrReplaceAll(
      EscapedLines(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// The end says more than the beginning: what is left out is in front.
std::string Shortened(const std::string& text) {
  const std::string shown = Escaped(text);
  if (shown.size() <= kLongestLabel) return shown;
  size_t from = shown.size() - kLongestLabel + 3;
  while (from < shown.size() && (shown[from] & 0xc0) == 0x80) ++from;
  return absl::StrCat("...", shown.substr(from));
}

struct PictureBox {
  std::string op, name, tip;
  const char* colour = "#ffffff";
  int nodes = 0;
};

const char* ColourOf(const NodeDef& n) {
  const OpDef* op = FindOp(n.op());
  if (op == nullptr) return "#ffd7d7";
  if (op->Is(OpRole::kPlaceholder)) return "#d6e8ff";
  if (op->Is(OpRole::kConstant)) return "#eeeeee";
  if (op->Is(OpRole::kReadVariable) || op->is_stateful) return "#fff3c4";
  if (CallsFunctions(*op)) return "#e6d9ff";
  return "#ffffff";
}

std::string TipOf(const NodeDef& n) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : n.attr()) {
    lines.push_back(absl::StrCat(name, "=", AttrText(value)));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrCat(n.op(), " ", n.name(), "\n", absl::StrJoin(lines, "\n"));
}

// The first `depth` parts of a name.
std::string ScopeOf(const std::string& name, int depth) {
  const std::vector<StringView> parts = absl::StrSplit(name, '/');
  if (static_cast<int>(parts.size()) <= depth) return name;
  return absl::StrJoin(parts.begin(), parts.begin() + depth, "/");
}

class Picture {
 public:
  Picture(const std::vector<const NodeDef*>& nodes, int depth) {
    std::map<std::string, int> by_scope;
    for (const NodeDef* n : nodes) {
      const auto [it, added] = by_scope.emplace(
          ScopeOf(n->name(), depth), static_cast<int>(boxes_.size()));
      if (added) {
        boxes_.push_back({n->op(), it->first, TipOf(*n), ColourOf(*n)});
      }
      ++boxes_[it->second].nodes;
      by_name_[n->name()] = it->second;
    }
    std::set<std::pair<int, int>> joined;
    for (const NodeDef* n : nodes) {
      const int to = by_name_.at(n->name());
      for (const std::string& input : n->input()) {
        auto from = by_name_.find(NodeOfInput(input));
        if (from == by_name_.end() || from->second == to) continue;
        if (!joined.insert({from->second, to}).second) continue;
        arrows_.push_back({from->second, to});
        is_control_.push_back(input.starts_with('^'));
      }
    }
    for (PictureBox& b : boxes_) {
      if (b.nodes == 1) continue;
      b.op = absl::StrCat(b.nodes, " nodes");
      b.tip = b.name;
      b.colour = "#f6f6f6";
    }
  }

  size_t num_boxes() const { return boxes_.size(); }

  std::string Draw() {
    std::vector<LayoutBox> places;
    for (const PictureBox& b : boxes_) {
      const size_t letters = std::max(b.op.size(), Shortened(b.name).size());
      places.push_back({static_cast<double>(letters) * kLetter + 16});
    }
    const double width = LayOut(kGap, &places, &arrows_) + 2 * kMargin;
    int last = 0;
    for (const LayoutBox& p : places) last = std::max(last, p.layer);
    const double height = last * kLayerHeight + kBoxHeight + 2 * kMargin;
    std::string svg = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
        "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"monospace\" font-size=\"11\">\n",
        width, height, width, height);
    svg +=
        "<defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"8\" "
        "refX=\"7\" "
        "refY=\"4\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
        "fill=\"#777\"/></marker></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    for (size_t i = 0; i < arrows_.size(); ++i) {
      DrawArrow(arrows_[i], is_control_[i], places, &svg);
    }
    for (size_t i = 0; i < boxes_.size(); ++i) {
      DrawBox(boxes_[i], places[i], &svg);
    }
    return svg + "</svg>\n";
  }

 private:
  static double Top(int layer) { return kMargin + layer * kLayerHeight; }

  static void DrawArrow(const LayoutArrow& a, bool is_control,
                        const std::vector<LayoutBox>& places,
                        std::string* svg) {
    const LayoutBox &from = places[a.from], &to = places[a.to];
    double x = from.x + kMargin, y = Top(from.layer) + kBoxHeight;
    absl::StrAppendFormat(svg, "<path d=\"M%.1f %.1f", x, y);
    const auto curve = [&](double to_x, double to_y) {
      const double middle = (y + to_y) / 2;
      absl::StrAppendFormat(svg, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle,
                            to_x, middle, to_x, to_y);
      x = to_x;
      y = to_y;
    };
    for (size_t k = 0; k < a.through.size(); ++k) {
      const double top = Top(from.layer + static_cast<int>(k) + 1);
      curve(a.through[k] + kMargin, top);
      y = top + kBoxHeight;
      absl::StrAppendFormat(svg, "L%.1f %.1f", x, y);
    }
    curve(to.x + kMargin, Top(to.layer) - 1);
    absl::StrAppend(svg, "\" fill=\"none\" stroke=\"#777\"",
                    is_control ? " stroke-dasharray=\"4 3\"" : "",
                    " marker-end=\"url(#a)\"/>\n");
  }

  static void DrawBox(const PictureBox& b, const LayoutBox& place,
                      std::string* svg) {
    const double x = place.x + kMargin, y = Top(place.layer);
    absl::StrAppendFormat(
        svg,
        "<g><title>%s</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
        "height=\"%.0f\" rx=\"5\" fill=\"%s\" stroke=\"#444\"/>",
        Xml(b.tip), x - place.width / 2, y, place.width, kBoxHeight, b.colour);
    absl::StrAppendFormat(svg,
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
                          "font-weight=\"bold\">%s</text>"
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
                          "fill=\"#555\">%s</text></g>\n",
                          x, y + 15, Xml(b.op), x, y + 29,
                          Xml(Shortened(b.name)));
  }

  std::vector<PictureBox> boxes_;
  std::vector<LayoutArrow> arrows_;
  std::vector<bool> is_control_;  // by arrow
  std::map<std::string, int> by_name_;
};

StatusOr<std::vector<const NodeDef*>> NodesOf(const GraphDef& graph,
                                              const Arguments& args) {
  std::vector<const NodeDef*> nodes;
  const auto add = [&](const auto& all) {
    for (const NodeDef& n : all) {
      const OpDef* op = FindOp(n.op());
      const bool constant = op != nullptr && op->Is(OpRole::kConstant);
      if (!constant || args.Has("constants")) nodes.push_back(&n);
    }
  };
  const std::optional<std::string> function = args.Get("function");
  if (!function) {
    add(graph.node());
    return nodes;
  }
  for (const auto& f : graph.library().function()) {
    if (f.signature().name() != *function) continue;
    add(f.node_def());
    return nodes;
  }
  return NotFound("there is no function ", *function);
}

StatusOr<int> RunSvg(const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const int64_t depth,
                      args.Int("depth", 0, 1, kDeepestNames));
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(args, kSvgOptions));
  FrozenGraph frozen;
  if (!source.graph) {
    if (source.kind != SourceKind::kSavedModel) {
      return InvalidArgument(source.given,
                             ": expected a SavedModel or a graph, got ",
                             KindName(source.kind));
    }
    HR_ASSIGN_OR_RETURN(frozen, FreezeModel(source, args));
  }
  const GraphDef& graph =
      source.graph ? source.graph->graph_def() : frozen.graph;
  HR_ASSIGN_OR_RETURN(const auto nodes, NodesOf(graph, args));
  int parts = depth ? static_cast<int>(depth) : INT32_MAX;
  if (depth == 0 && nodes.size() > kReadableBoxes) {
    parts = kDeepestNames;
    while (parts > 1 && Picture(nodes, parts).num_boxes() > kReadableBoxes) {
      --parts;
    }
  }
  Picture picture(nodes, parts);
  if (picture.num_boxes() > kMostBoxes) {
    return ResourceExhausted(source.given, ": ", picture.num_boxes(),
                             " boxes are more than a picture can show, ",
                             kMostBoxes, ": choose a smaller --depth");
  }
  const std::string svg = picture.Draw();
  const std::optional<std::string> path = args.Get("output");
  if (!path) {
    out.Print(svg);
    return kDone;
  }
  HR_RETURN_IF_ERROR(WriteFile(*path, svg));
  out.Print("Wrote ", Escaped(*path), ": ", picture.num_boxes(), " boxes\n");
  return kDone;
}

}  // namespace

const CommandDef kSvgCommand = {
    "svg",
    "Draw a graph or a model's signature.",
    kSvgPositionals,
    kSvgOptions,
    "Inputs are blue, what has state yellow, calls of functions violet; "
    "dashed\n"
    "arrows are control inputs. Boxes show their attributes when pointed at.",
    RunSvg};

}  // namespace headrace::command
