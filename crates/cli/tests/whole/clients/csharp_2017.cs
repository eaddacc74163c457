// A client after the C# sample of the 2017 pages, for the tests of notbefore.
//
// What it keeps, because a service has to live with it: WebClient and Newtonsoft.Json; a GET with the
// Metadata header and a POST without; Content-Type application/json; the Expect: 100-continue that WebClient
// adds by itself; the incarnation as a string, in the class and so in the approval; NotBefore as a date that
// may be missing; every listed event in one POST, those that have started too; any refusal an exception that
// nobody catches.
//
// Where it differs, and why:
//   - The sample does not compile (a keyword as a name, a call of a method that is not there, no using
//     lines). This one was written from what it does, not from its text.
//   - The sample waits for Enter before it approves, and never ends. This one approves each new document at
//     once, and ends when an event that it has seen is gone: nobody sits before a test.
//   - The sample asks for 2017-03-01 only. This one takes the version as its argument, so that the same
//     habits can be tried at a newer one.
//   - It prints one line for each event of a new document, beginning with the incarnation.
using System;
using System.Collections.Generic;
using System.Net;
using System.Threading;
using Newtonsoft.Json;

class Document
{
    public string DocumentIncarnation { get; set; }
    public List<Announcement> Events { get; set; }
}

class Announcement
{
    public string EventId { get; set; }
    public string EventStatus { get; set; }
    public string EventType { get; set; }
    public string ResourceType { get; set; }
    public List<string> Resources { get; set; }
    public DateTime? NotBefore { get; set; }
}

class Approval
{
    public string DocumentIncarnation { get; set; }
    public List<StartRequest> StartRequests { get; set; }
}

class StartRequest
{
    public string EventId { get; set; }
}

class Client
{
    readonly string url;

    Client(string version)
    {
        url = "http://169.254.169.254/metadata/scheduledevents?api-version=" + version;
    }

    Document Read()
    {
        using (var web = new WebClient())
        {
            web.Headers.Add("Metadata", "true");
            return JsonConvert.DeserializeObject<Document>(web.DownloadString(url));
        }
    }

    void Approve(Document document)
    {
        var approval = new Approval
        {
            DocumentIncarnation = document.DocumentIncarnation,
            StartRequests = document.Events.ConvertAll(e => new StartRequest { EventId = e.EventId }),
        };
        using (var web = new WebClient())
        {
            web.Headers.Add("Content-Type", "application/json");
            web.UploadString(url, JsonConvert.SerializeObject(approval));
        }
        Console.WriteLine("approved {0}", approval.StartRequests.Count);
    }

    static void Show(Document document)
    {
        if (document.Events.Count == 0)
        {
            Console.WriteLine("{0} nothing", document.DocumentIncarnation);
        }
        foreach (var e in document.Events)
        {
            var notBefore = e.NotBefore.HasValue
                ? e.NotBefore.Value.ToUniversalTime().ToString("yyyy-MM-ddTHH:mm:ssZ")
                : "now";
            Console.WriteLine("{0} {1} {2} {3} {4} {5}", document.DocumentIncarnation, e.EventId, e.EventStatus,
                e.EventType, string.Join(",", e.Resources), notBefore);
        }
    }

    static void Main(string[] arguments)
    {
        var client = new Client(arguments[0]);
        string last = null;
        for (var seen = false; ; Thread.Sleep(100))
        {
            var document = client.Read();
            if (document.DocumentIncarnation == last)
            {
                continue;
            }
            last = document.DocumentIncarnation;
            Show(document);
            if (document.Events.Count > 0)
            {
                seen = true;
                client.Approve(document);
            }
            else if (seen)
            {
                return;
            }
        }
    }
}
