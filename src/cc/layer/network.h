// A functional model's layers in order, and how its outputs are computed.
#pragma once

#include <string>
#include <vector>

#include "headrace/layer/functional.h"

namespace headrace::tf::layers {

struct Model::Network {
  // A call: where its inputs and outputs stand among the values.
  struct Step {
    Layer* layer;
    std::vector<size_t> inputs, outputs;
    bool all;
  };

  Network(std::vector<Symbolic> inputs, std::vector<Symbolic> outputs);

  // Its outputs for those inputs, as many as it has.
  std::vector<Tensor> Run(const std::vector<Tensor>& given,
                          bool training) const;
  // Of each layer, "name[call][output]" of what it is called with.
  std::vector<std::string> InboundOf(size_t layer) const;
  // Whether each layer is called once, with what the one before gives.
  bool is_chain = false;

  std::vector<Symbolic> inputs, outputs;
  std::vector<std::shared_ptr<Layer>> layers;
  std::vector<std::string> names;
  std::vector<const Symbolic::Node*> nodes;  // as they run, Inputs too
  std::vector<Step> steps;
  std::vector<size_t> results;
  size_t num_values = 0;

 private:
  void Visit();
  void Order();
  void Name();
  void Plan();

  std::vector<const Symbolic::Node*> found_;  // each after what it needs
  std::vector<const Layer*> touched_;         // in order of discovery
};

}  // namespace headrace::tf::layers
