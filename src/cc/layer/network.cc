#include "cc/layer/network.h"

#include <algorithm>
#include <map>
#include <set>

#include "cc/compose.h"
#include "cc/layer/symbolic.h"

namespace headrace::tf::layers {

using internal::Throw;
using Node = Symbolic::Node;

namespace {

const Node* NodeOf(const Symbolic& x) { return x.rep().node.get(); }

template <typename T>
bool Contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

void CheckInputs(const std::vector<Symbolic>& inputs) {
  std::set<const Node*> seen;
  for (const Symbolic& x : inputs) {
    const Node* node = NodeOf(x);
    if (node == nullptr || !node->inputs.empty()) {
      Throw(ErrorCode::kInvalidArgument,
            "the inputs of a Model must be what layers::Input gave; one is an "
            "output of " +
                (node ? node->layer->name() : std::string("nothing")));
    }
    if (seen.insert(node).second) continue;
    Throw(ErrorCode::kInvalidArgument,
          "The list of inputs passed to the model contains the same input "
          "multiple times: " +
              node->layer->name());
  }
}

}  // namespace

Model::Network::Network(std::vector<Symbolic> in, std::vector<Symbolic> out)
    : inputs(std::move(in)), outputs(std::move(out)) {
  if (inputs.empty() || outputs.empty()) {
    Throw(ErrorCode::kInvalidArgument, "a Model has inputs and outputs");
  }
  CheckInputs(inputs);
  Visit();
  Order();
  Name();
  Plan();
}

// Depth first from the outputs, without recursion: chains may be long.
void Model::Network::Visit() {
  std::set<const Node*> done, given;
  std::set<const Layer*> touched;
  for (const Symbolic& x : inputs) given.insert(NodeOf(x));
  for (const Symbolic& out : outputs) {
    std::vector<std::pair<const Node*, bool>> stack = {{NodeOf(out), false}};
    while (!stack.empty()) {
      const auto [node, left] = stack.back();
      stack.pop_back();
      if (left) {
        if (done.insert(node).second) found_.push_back(node);
        continue;
      }
      if (done.contains(node)) continue;
      const Layer* layer = node->layer.get();
      if (touched.insert(layer).second) touched_.push_back(layer);
      stack.push_back({node, true});
      // An input has nothing behind it either, but is not missing.
      if (given.contains(node)) continue;
      if (node->inputs.empty()) {
        Throw(ErrorCode::kInvalidArgument,
              "Graph disconnected: the outputs need the input \"" +
                  node->layer->name() +
                  "\", which is not among the model's inputs");
      }
      for (size_t i = node->inputs.size(); i-- > 0;) {
        stack.push_back({NodeOf(node->inputs[i]), false});
      }
    }
  }
}

// Depths: distances from the outputs, equal for all calls of a layer.
void Model::Network::Order() {
  std::map<const Node*, int64_t> depths, places;
  std::map<const Layer*, int64_t> layer_depths, order;
  for (size_t i = 0; i < touched_.size(); ++i) order[touched_[i]] = i;
  for (size_t i = found_.size(); i-- > 0;) {
    const Node* node = found_[i];
    places[node] = i;
    const Layer* layer = node->layer.get();
    // A layer that is called twice stands where its deepest call is.
    const int64_t depth = std::max(depths[node], layer_depths[layer]);
    if (!Contains(layers, node->layer)) layers.push_back(node->layer);
    layer_depths[layer] = depths[node] = depth;
    for (const Symbolic& x : node->inputs) {
      int64_t& below = depths[NodeOf(x)];
      below = std::max(depth + 1, below);
    }
  }
  for (const Symbolic& x : inputs) {
    const std::shared_ptr<Layer>& layer = NodeOf(x)->layer;
    if (Contains(layers, layer)) continue;
    layers.push_back(layer);
    layer_depths[layer.get()] = 0;
    order[layer.get()] = -1;
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [&](const auto& a, const auto& b) {
                     return std::pair(-layer_depths[a.get()], order[a.get()]) <
                            std::pair(-layer_depths[b.get()], order[b.get()]);
                   });
  nodes = found_;
  std::sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) {
    return std::pair(-depths[a], -places[a]) <
           std::pair(-depths[b], -places[b]);
  });
}

void Model::Network::Name() {
  std::map<std::string, int> counts;
  for (const auto& layer : layers) {
    std::string name = layer->name();
    while (Contains(names, name)) {
      name = absl::StrCat(layer->name(), "_", ++counts[layer->name()]);
    }
    names.push_back(name);
  }
}

void Model::Network::Plan() {
  std::map<std::pair<const Node*, size_t>, size_t> places;
  const auto place = [&](const Node* node, size_t index) {
    return places.emplace(std::pair(node, index), places.size()).first->second;
  };
  const auto place_of = [&](const Symbolic& x) {
    return place(NodeOf(x), x.rep().index);
  };
  for (const Symbolic& x : inputs) place_of(x);
  std::map<const Node*, int> users;
  std::set<const Layer*> called;
  is_chain = inputs.size() == 1;
  for (const Node* node : nodes) {
    is_chain = is_chain && called.insert(node->layer.get()).second;
    if (node->inputs.empty()) continue;
    Step step{node->layer.get(), {}, {}, node->all};
    std::set<const Node*> parents;
    for (const Symbolic& x : node->inputs) {
      step.inputs.push_back(place_of(x));
      if (parents.insert(NodeOf(x)).second) ++users[NodeOf(x)];
    }
    is_chain = is_chain && parents.size() == 1;
    for (size_t i = 0; i < node->count; ++i)
      step.outputs.push_back(place(node, i));
    steps.push_back(std::move(step));
  }
  for (const auto& [node, count] : users) is_chain = is_chain && count == 1;
  for (const Symbolic& x : outputs) results.push_back(place_of(x));
  num_values = places.size();
}

std::vector<Tensor> Model::Network::Run(const std::vector<Tensor>& given,
                                        bool training) const {
  std::vector<Tensor> values(num_values);
  std::copy(given.begin(), given.end(), values.begin());
  for (const Step& step : steps) {
    std::vector<Tensor> in;
    for (const size_t i : step.inputs) in.push_back(values[i]);
    if (!step.all) {
      values[step.outputs[0]] = (*step.layer)(in, training);
      continue;
    }
    const std::vector<Tensor> out = step.layer->Outputs(in, training);
    for (size_t i = 0; i < out.size() && i < step.outputs.size(); ++i) {
      values[step.outputs[i]] = out[i];
    }
  }
  std::vector<Tensor> found;
  for (const size_t i : results) found.push_back(values[i]);
  return found;
}

std::vector<std::string> Model::Network::InboundOf(size_t which) const {
  std::vector<const Node*> made = nodes;  // in the order of the calls
  std::sort(made.begin(), made.end(),
            [](const Node* a, const Node* b) { return a->serial < b->serial; });
  std::map<const Node*, int> calls;  // which call of its layer a node is
  std::map<const Layer*, int> seen;
  for (const Node* node : made) calls[node] = seen[node->layer.get()]++;
  std::vector<std::string> found;
  for (const Node* node : made) {
    if (node->layer != layers[which]) continue;
    for (const Symbolic& x : node->inputs) {
      const Node* from = NodeOf(x);
      const auto at = std::find(layers.begin(), layers.end(), from->layer);
      found.push_back(absl::StrCat(names[at - layers.begin()], "[", calls[from],
                                   "][", x.rep().index, "]"));
    }
  }
  return found;
}

}  // namespace headrace::tf::layers
