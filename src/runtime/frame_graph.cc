#include "runtime/frame_graph.h"

#include <deque>

#include "base/hash_map.h"
#include "graph/at_node.h"
#include "op/processor.h"
#include "op/rendezvous.h"
#include "runtime/references.h"
#include "runtime/stateful_kernels.h"

namespace headrace {
namespace {

Status NotFed(const Node& n) {
  return InvalidArgument("You must feed a value for placeholder tensor '",
                         n.name(), "' with dtype ", DTypeName(n.output_type(0)),
                         " and shape ", n.output_shape(0).ToString());
}

using FeedMap = HashMap<Edge, int>;

class Maker {
 public:
  Maker(FrameGraph* g, absl::Span<Node* const> single,
        absl::Span<const FrameIsland> islands, absl::Span<const Edge> feeds)
      : g_(*g), single_(single), islands_(islands) {
    for (size_t i = 0; i < feeds.size(); ++i) {
      feeds_.emplace(feeds[i], static_cast<int>(i));
    }
    int id = 0;
    for (Node* n : single) ids_.emplace(n, id++);
    for (const FrameIsland& island : islands) {
      for (Node* n : island.nodes) ids_.emplace(n, id);
      int output = 0;
      for (const Edge& e : island.outputs) island_outputs_[e] = output++;
      ++id;
    }
  }

  Status Make(absl::Span<const Edge> fetches) {
    const int first_island = static_cast<int>(single_.size());
    const int count = first_island + static_cast<int>(islands_.size());
    g_.nodes.resize(count);
    // The root, in which all nodes outside of loops run.
    g_.frames.emplace_back();
    for (int i = 0; i < first_island; ++i) {
      HR_RETURN_IF_ERROR(SetNode(single_[i], &g_.nodes[i]));
    }
    for (int i = first_island; i < count; ++i) {
      SetIsland(islands_[i - first_island], &g_.nodes[i]);
    }
    for (const Node* n : single_) NoteReferences(*n);
    for (int i = 0; i < first_island; ++i) {
      Node* n = single_[i];
      const std::vector<Edge> inputs = Now({n}, n->inputs());
      HR_RETURN_IF_ERROR(Connect(i, inputs, n->control_inputs()));
    }
    for (int i = first_island; i < count; ++i) {
      const FrameIsland& island = islands_[i - first_island];
      const std::vector<const Node*> nodes(island.nodes.begin(),
                                           island.nodes.end());
      const std::vector<Edge> inputs = Now(nodes, island.inputs);
      HR_RETURN_IF_ERROR(Connect(i, inputs, island.controls));
    }
    HR_RETURN_IF_ERROR(FindFrames());
    HR_RETURN_IF_ERROR(CheckEnds());
    for (int i = 0; i < count; ++i) Place(i);
    return SetFetches(fetches);
  }

 private:
  void NoteReferences(const Node& n) {
    for (int i = 0; i < n.num_inputs(); ++i) {
      const Edge& e = n.input(i);
      if (!IsRef(e.node->output_type(e.index)) || feeds_.contains(e)) continue;
      if (!TakesReference(n.op(), i)) {
        aliases_.Read(n, e);
      } else if (HasSideEffect(n.def())) {
        aliases_.Write(n, e);
      }
    }
  }

  // The inputs of nodes that run as one: in the place of copies the references
  // behind which there are later values by then. A copy that may be dead, as it
  // waits for others, stays.
  std::vector<Edge> Now(absl::Span<const Node* const> nodes,
                        absl::Span<const Edge> inputs) {
    std::vector<Edge> now(inputs.begin(), inputs.end());
    for (Edge& e : now) {
      if (feeds_.contains(e) || !e.node->control_inputs().empty()) continue;
      const std::optional<Edge> reference = aliases_.Stale(nodes, e);
      if (reference && reference->node->num_inputs() == 0 &&
          reference->node->control_inputs().empty()) {
        e = *reference;
      }
    }
    return now;
  }

  static void SetIsland(const FrameIsland& island,
                        FrameGraph::FrameNode* node) {
    node->op = island.op;
    node->kernel = island.kernel;
    node->targets.resize(island.outputs.size() + 1);
    node->fetches.resize(island.outputs.size());
  }

  Status SetNode(Node* n, FrameGraph::FrameNode* node) {
    FrameGraph::FrameNode& out = *node;
    HR_ASSIGN_OR_RETURN(out.op, NamedOp(*n));
    out.name = n->name();
    if (IsFrameOp(n->def())) out.role = n->def().role;
    if (n->def().Is(OpRole::kPlaceholder) && n->num_inputs() == 0) {
      if (!feeds_.contains(Edge{n, 0})) return NotFed(*n);
      out.role = OpRole::kControlTrigger;  // somebody waits for it only
    }
    // The last one is for control outputs.
    out.targets.resize(n->num_outputs() + 1);
    out.fetches.resize(n->num_outputs());
    if (out.role == OpRole::kEnter) {
      out.constant = n->op().bool_attr("is_constant");
    }
    if (out.role != OpRole::kNone) return OkStatus();
    if (n->def().Is(kSendRole) || n->def().Is(kReceiveRole)) {
      out.role = n->def().role;
    }
    auto* const kernels = StatefulKernelsScope::current();
    // (Those that meet others belong to a processor as well.)
    if (kernels && !n->def().Has(kMeetsOthers)) {
      out.kernel = kernels->Of(*n, *out.op);
      if (out.kernel) return OkStatus();
    }
    StatusOr<std::unique_ptr<Kernel>> kernel = BindKernel(*out.op);
    if (!kernel.ok()) return AtNode(kernel.status(), n->name());
    const auto named =
        n->def().Has(kMeetsOthers) ? ProcessorNamed(n->device()) : std::nullopt;
    out.kernel =
        named ? OnProcessor(*std::move(kernel), *named) : *std::move(kernel);
    return OkStatus();
  }

  // What reads edge `e` for who wants a value.
  static StatusOr<FrameGraph::Reader> ReaderOf(const Edge& e) {
    FrameGraph::Reader reader;
    const DType type = e.node->output_type(e.index);
    if (!IsRef(type)) return reader;
    HR_ASSIGN_OR_RETURN(reader.op, ReaderOfReference(BaseType(type)));
    HR_ASSIGN_OR_RETURN(reader.kernel, BindKernel(*reader.op));
    return reader;
  }

  // The output of a node, or of the island that it is in.
  int OutputOf(const Edge& e) const {
    auto it = island_outputs_.find(e);
    return it == island_outputs_.end() ? e.index : it->second;
  }

  Status Connect(int id, absl::Span<const Edge> inputs,
                 absl::Span<Node* const> controls) {
    FrameGraph::FrameNode& out = g_.nodes[id];
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const Edge& e = inputs[i];
      auto feed = feeds_.find(e);
      FrameGraph::Source source;
      if (feed != feeds_.end()) {
        source.feed = feed->second;
      } else {
        g_.nodes[ids_.at(e.node)].targets[OutputOf(e)].push_back({id, i});
        ++out.waiting;
        // An op that wants the variable's value reads it when it runs, as
        // assignments in the same frame count by then.
        if (!TakesReference(*out.op, i)) {
          HR_ASSIGN_OR_RETURN(source.reader, ReaderOf(e));
        }
      }
      out.inputs.push_back(source);
    }
    for (Node* c : controls) {
      g_.nodes[ids_.at(c)].targets.back().push_back({id, -1});
      ++out.waiting;
      ++out.control_waiting;
    }
    return OkStatus();
  }

  StatusOr<int> FrameOfOutputs(int id) {
    FrameGraph::FrameNode& n = g_.nodes[id];
    if (n.role == OpRole::kExit) {
      // Exits of the root would have nowhere to go.
      if (n.frame == 0) {
        return InvalidArgument("Node ", n.name,
                               " leaves a frame that nothing "
                               "entered");
      }
      return g_.frames[n.frame].parent;
    }
    if (n.role != OpRole::kEnter) return n.frame;
    const std::string& name = n.op->string_attr("frame_name");
    auto [it, added] = children_.emplace(std::make_pair(n.frame, name),
                                         static_cast<int>(g_.frames.size()));
    if (added) {
      FrameGraph::Frame frame;
      frame.parent = n.frame;
      frame.name = name;
      g_.frames.push_back(std::move(frame));
    }
    return it->second;
  }

  // Follows edges from the nodes that wait for nothing.
  Status FindFrames() {
    std::deque<int> found;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (g_.nodes[i].waiting > 0) continue;
      g_.nodes[i].frame = 0;
      found.push_back(static_cast<int>(i));
    }
    while (!found.empty()) {
      int id = found.front();
      found.pop_front();
      HR_ASSIGN_OR_RETURN(int frame, FrameOfOutputs(id));
      g_.nodes[id].out_frame = frame;
      for (const auto& targets : g_.nodes[id].targets) {
        for (const FrameGraph::Target& t : targets) {
          FrameGraph::FrameNode& user = g_.nodes[t.node];
          if (user.frame < 0) {
            user.frame = frame;
            found.push_back(t.node);
          } else if (user.frame != frame) {
            return InvalidArgument("Node ", user.name,
                                   " has inputs from different frames: '",
                                   g_.frames[user.frame].name, "' and '",
                                   g_.frames[frame].name, "'");
          }
        }
      }
    }
    for (const FrameGraph::FrameNode& n : g_.nodes) {
      if (n.frame < 0) {
        return InvalidArgument("Graph is invalid, contains a cycle with node ",
                               n.name);
      }
    }
    return OkStatus();
  }

  // A key of a rendezvous names no iteration.
  Status CheckEnds() const {
    for (const FrameGraph::FrameNode& n : g_.nodes) {
      if (n.frame == 0 || (n.role != kSendRole && n.role != kReceiveRole)) {
        continue;
      }
      return Unimplemented("Node ", n.name, ": the loop '",
                           g_.frames[n.frame].name,
                           "' has nodes on several devices, which is not "
                           "supported: place all of the loop on one");
    }
    return OkStatus();
  }

  void Place(int id) {
    FrameGraph::FrameNode& n = g_.nodes[id];
    FrameGraph::Frame& frame = g_.frames[n.frame];
    n.slot = static_cast<int>(frame.waiting.size());
    frame.waiting.push_back(n.role == OpRole::kMerge ? n.control_waiting
                                                     : n.waiting);
    for (FrameGraph::Source& s : n.inputs) {
      if (s.feed < 0) s.value = frame.values++;
    }
    if (n.role == OpRole::kEnter) ++g_.frames[n.out_frame].enters;
    if (n.role == OpRole::kExit) frame.exits.push_back(id);
  }

  Status SetFetches(absl::Span<const Edge> fetches) {
    g_.num_fetches = static_cast<int>(fetches.size());
    g_.fetch_readers.resize(fetches.size());
    for (size_t i = 0; i < fetches.size(); ++i) {
      auto feed = feeds_.find(fetches[i]);
      g_.fetched_feeds.push_back(feed == feeds_.end() ? -1 : feed->second);
      if (feed != feeds_.end()) continue;
      HR_ASSIGN_OR_RETURN(g_.fetch_readers[i], ReaderOf(fetches[i]));
      FrameGraph::FrameNode& n = g_.nodes[ids_.at(fetches[i].node)];
      if (n.out_frame != 0) {
        return InvalidArgument("Operation '", fetches[i].node->name(),
                               "' has been marked as not fetchable: it lies "
                               "inside a loop");
      }
      n.fetches[OutputOf(fetches[i])].push_back(static_cast<int>(i));
    }
    return OkStatus();
  }

  FrameGraph& g_;
  absl::Span<Node* const> single_;
  absl::Span<const FrameIsland> islands_;
  FeedMap feeds_;
  HashMap<const Node*, int> ids_;  // islands come behind single nodes
  HashMap<Edge, int> island_outputs_;
  ReferenceAliases aliases_;
  HashMap<std::pair<int, std::string>, int> children_;
};

}  // namespace

bool IsFrameOp(const OpDef& op) {
  return op.role >= OpRole::kSwitch && op.role <= OpRole::kControlTrigger;
}

bool MayBeDead(const Node& n) {
  if (IsFrameOp(n.def())) return true;
  if (!n.def().Is(kReceiveRole)) return false;
  const bool* alive = n.op().attrs().Get<bool>("_alive");
  return alive == nullptr || !*alive;
}

StatusOr<FrameGraph> FrameGraph::Make(absl::Span<Node* const> single,
                                      absl::Span<const FrameIsland> islands,
                                      absl::Span<const Edge> feeds,
                                      absl::Span<const Edge> fetches) {
  FrameGraph g;
  HR_RETURN_IF_ERROR(Maker(&g, single, islands, feeds).Make(fetches));
  return g;
}

}  // namespace headrace
