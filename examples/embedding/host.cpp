// A host program: it reads points from its input, one a line, and asks a trained network about each: embedding FILE
#include "ring_classifier.h"

#include <iostream>

int main(int argc, char** argv) {
  std::string problem;
  const auto classifier = RingClassifier::load(argc > 1 ? argv[1] : "rings.safetensors", problem);
  if (!classifier) {
    std::cerr << "no predictions: " << problem << '\n';
    return 3;
  }
  for (float x = 0, y = 0; std::cin >> x >> y;)
    std::cout << x << ' ' << y << (classifier->is_on_ring(x, y) ? " on the ring\n" : " off the ring\n");
}
