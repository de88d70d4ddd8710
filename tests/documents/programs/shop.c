/* Looks up products by number: in a binary search, or in a loop over all products. */
enum { PRODUCTS = 200, ORDERS = 8000000 };
static volatile long sum;
static int products[PRODUCTS];
__attribute__((noinline)) int find_article(int number) {
#ifdef BINARY
    int first = 0, last = PRODUCTS;
    while (last - first > 1) {
        int middle = (first + last) / 2;
        if (products[middle] <= number)
            first = middle;
        else
            last = middle;
    }
    return first;
#else
    int found = 0;
    for (int i = 0; i < PRODUCTS; i++)
        if (products[i] == number)
            found = i;
    return found;
#endif
}
__attribute__((noinline)) void checksum(int article) {
    for (int i = 0; i < 40; i++)
        sum += article ^ i;
}
int main(void) {
    for (int i = 0; i < PRODUCTS; i++)
        products[i] = i * 3;
    for (int order = 0; order < ORDERS; order++)
        checksum(find_article(order % PRODUCTS * 3));
}
