#include "autodiff/gradient_function.h"

#include "autodiff/written_function.h"

namespace headrace {
namespace {

// `body` as a copy of itself: a gradient that was written down for a graph is
// asked as those of copies are.
std::shared_ptr<const CopiedFrom> SameGraph(const Function& f,
                                            const Node& node) {
  auto same = std::make_shared<CopiedFrom>();
  auto edges = std::make_shared<EdgeMap>();
  for (int i = 0; i < f.body->num_nodes(); ++i) {
    Node* n = f.body->node(i);
    for (int out = 0; out < n->num_outputs(); ++out) {
      (*edges)[Edge{n, out}] = Edge{n, out};
    }
  }
  same->graph = f.body;
  same->edges = std::move(edges);
  same->captures_values = true;
  if (const Origins* origins = OriginsOf(f)) {
    auto it = origins->find(&node);
    if (it != origins->end()) same->earlier = it->second;
  }
  return same;
}

// One placeholder an output of the node.
StatusOr<std::vector<Value>> Arriving(GraphBuilder* builder, const Node& node) {
  std::vector<Value> gradients;
  for (int i = 0; i < node.num_outputs(); ++i) {
    HR_ASSIGN_OR_RETURN(
        Value g, builder->AddPlaceholder(absl::StrCat("result_grads_", i),
                                         BaseType(node.output_type(i)),
                                         node.output_shape(i), nullptr));
    gradients.push_back(std::move(g));
  }
  return gradients;
}

// Adds what there is of `gradient` to `results` and says where.
StatusOr<FunctionGradient::Places> Placed(GraphBuilder* builder,
                                          const Gradient& gradient,
                                          std::vector<Value>* results) {
  FunctionGradient::Places places;
  const std::pair<const Value*, int*> parts[] = {
      {&gradient.dense, &places.dense},
      {&gradient.values, &places.values},
      {&gradient.indices, &places.indices},
      {&gradient.dense_shape, &places.dense_shape}};
  for (auto [part, place] : parts) {
    if (!*part) continue;
    HR_ASSIGN_OR_RETURN(Value inside, builder->Import(*part));
    *place = static_cast<int>(results->size());
    results->push_back(std::move(inside));
  }
  return places;
}

// What a capture is where the gradient is asked for.
StatusOr<Value> CaptureAt(GradientContext& g, const Value& capture,
                          const CopiedFrom* copied) {
  if (!capture.is_symbolic()) {
    // It cannot change any more, so a constant says as much.
    Value constant = g.Const(capture.tensor());
    HR_RETURN_IF_ERROR(g.status());
    return constant;
  }
  const std::shared_ptr<Graph>& graph = g.output(0).graph();
  if (capture.graph() == graph) return capture;
  if (copied) {
    if (auto e = copied->Find(capture)) return graph->Output(*e);
  }
  return InvalidArgument(
      "a gradient function reads ", capture.node()->name(), ":",
      capture.index(),
      ", a tensor of a function that is not the one whose gradient it gives");
}

Status CallGradientFunction(const GradientFunction& gradient,
                            GradientContext& g, const CopiedFrom* copied) {
  const size_t own = gradient.function->args.size() - gradient.captures.size();
  if (static_cast<size_t>(g.num_outputs()) != own ||
      static_cast<size_t>(g.num_inputs()) != gradient.places.size()) {
    return InvalidArgument("gradient function ", gradient.function->name,
                           " is for ", gradient.places.size(), " inputs and ",
                           own, " outputs, the ", g.op().name(), " has ",
                           g.num_inputs(), " and ", g.num_outputs());
  }
  std::vector<Value> inputs;
  for (int i = 0; i < g.num_outputs(); ++i) {
    inputs.push_back(g.grad_or_zeros(i));
  }
  HR_RETURN_IF_ERROR(g.status());
  for (const Value& capture : gradient.captures) {
    HR_ASSIGN_OR_RETURN(Value v, CaptureAt(g, capture, copied));
    inputs.push_back(std::move(v));
  }
  const ValueList results = CallFunction(g, gradient.function, inputs);
  HR_RETURN_IF_ERROR(g.status());
  const auto at = [&](int place) {
    return place < 0 ? Value() : results[place];
  };
  for (int i = 0; i < g.num_inputs(); ++i) {
    const FunctionGradient::Places& p = gradient.places[i];
    g.set(i, Gradient{at(p.dense), at(p.values), at(p.indices),
                      at(p.dense_shape)});
  }
  return g.status();
}

}  // namespace

StatusOr<GradientFunction> AsGradientFunction(const Function& f,
                                              const Node& node,
                                              StringView name) {
  const NamedGradient gradient = FindNamedGradient(name);
  if (!gradient) {
    return NotFound("gradient registry has no entry for: ", name);
  }
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  StopRecording quiet;
  HR_ASSIGN_OR_RETURN(std::vector<Value> args, Arriving(&builder, node));
  std::vector<Value> inputs, outputs;
  for (const Edge& e : node.inputs()) inputs.push_back(f.body->Output(e));
  std::vector<Gradient> arriving;
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs.push_back(f.body->Output({const_cast<Node*>(&node), i}));
    arriving.push_back(Gradient{args[i]});
  }
  GradientContext g(node.op_ptr(), inputs, outputs, arriving);
  const auto same = SameGraph(f, node);
  HR_RETURN_IF_ERROR(gradient(g, same.get()));
  HR_RETURN_IF_ERROR(g.status());
  GradientFunction made;
  std::vector<Value> results;
  for (const Gradient& result : g.results()) {
    HR_ASSIGN_OR_RETURN(auto places, Placed(&builder, result, &results));
    made.places.push_back(places);
  }
  for (const GraphBuilder::Capture& c : builder.captures()) {
    if (c.outer.is_symbolic() && c.outer.graph() != f.body) {
      return InvalidArgument("a gradient function reads ",
                             c.outer.node()->name(), ":", c.outer.index(),
                             ", a tensor of another graph");
    }
    args.push_back(c.inner);
    made.captures.push_back(c.outer);
  }
  made.function =
      MakeFunction(FunctionLibrary::NewName("__inference_internal_grad_fn"),
                   builder, args, results);
  HR_RETURN_IF_ERROR(GlobalFunctions().Add(made.function));
  return made;
}

NamedGradient GradientCalling(GradientFunction gradient) {
  return [gradient = std::move(gradient)](GradientContext& g,
                                          const CopiedFrom* copied) {
    return CallGradientFunction(gradient, g, copied);
  };
}

}  // namespace headrace
