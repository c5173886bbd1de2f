// A program that serves a model and asks for it: `served FOLDER PORT`, FOLDER
// with the model's versions.
#include <iostream>

#include "headrace/serving_client.h"
#include "headrace/serving_server.h"

namespace tf = headrace::tf;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string port = argv[2];
  tf::ModelServer server({"--port=" + port, "--model_name=plain",
                          std::string("--model_base_path=") + argv[1]});
  const tf::ServingClient client("127.0.0.1:" + port);
  const auto answer = client.Predict(
      {"plain"}, {{"x", tf::Tensor::From<float>({1, 2})}}, {"twice"});
  std::cout << "version " << answer.version << ": "
            << answer.outputs.at("twice").ToString() << "\n";
  server.Drain();
  return client.Ready() ? 1 : 0;
}
