void one();
void two();
void given();

int main() {
  one();
  two();
  given();
}
